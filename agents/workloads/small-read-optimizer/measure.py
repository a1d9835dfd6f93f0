"""Measure the gain of tuning the small read optimizer on this machine, with a service and an agent of its own.

`patterns` measures, for each I/O pattern, the exhaustive grid, runs a study with its final check, and then measures the
defaults, the best found and the best of the grid in turns, behind the slow file server and then on the agent's own disk
(the control, in which nothing is injected). `noise` repeats [robert-2021, chapter 5]: it runs studies
with each resampling policy while other programs read and write the same file at three rates of arrival, and measures
the recommended configurations again without noise.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

import yaml

import trimtab
from trimtab.cli.submission import load
from trimtab.errors import InvalidInput
from trimtab.study import Study

WORKLOAD = Path(__file__).resolve().parent
sys.path.append(str(WORKLOAD.parent))

import measuring  # noqa: E402  # in the parent folder
from measuring import GOES_ON, INTERRUPTED, Values, add_comparison, best_of, gaps, values_of, write  # noqa: E402
from scripts import ScriptError, check_names, check_numbers, exit_status, parser_of, screen  # noqa: E402

COMPONENT = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
STUDY = yaml.safe_load((WORKLOAD / "study.yml").read_text())
PARAMETERS = tuple(COMPONENT["parameters"])
PATTERNS = ("columns", "sro-1", "sro-2", "sro-3", "hotspots")
NOISE = ("noise-write", "noise-write", "noise-read")
# The application of the noisy experiment: a variation of [robert-2021, section 5.5.1].
NOISY = "hotspots"
POLICIES: Mapping[str, trimtab.Policy] = {
    "none": trimtab.Policy("none"),
    "static": trimtab.Policy("static", n=3),
    "sedr": trimtab.Policy("sedr", threshold=0.1),
    "thesis": trimtab.Policy("thesis"),
    "adaptive": trimtab.Policy("adaptive"),
}
EXAMPLE = """\
examples:
  python agents/workloads/small-read-optimizer/measure.py patterns
  python agents/workloads/small-read-optimizer/measure.py noise --repetitions 2 --trials 25

"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or a part fails."""
    options = arguments(argv)

    def work() -> None:
        check(options)
        with Bench(WORKLOAD, options.folder) as bench:
            (patterns if options.what == "patterns" else noise)(bench, options)

    return exit_status(work, INTERRUPTED)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = parser_of(__doc__, EXAMPLE + GOES_ON)
    kinds = parser.add_subparsers(dest="what", required=True)
    one = kinds.add_parser("patterns", help="default, best found and best of the exhaustive grid of each pattern")
    add_comparison(one, PATTERNS, replicates=2, trials=40, check=20, rounds=9)
    two = kinds.add_parser("noise", help="the resampling policies under concurrent noise")
    two.add_argument("--runs", default="0.5,4,10", help="runs of the default between arrivals (default: %(default)s)")
    two.add_argument("--arrivals", default="fixed", help="fixed or random times of arrival (default: %(default)s)")
    two.add_argument("--repetitions", type=int, default=5, help="studies of each kind (default: %(default)s)")
    two.add_argument("--trials", type=int, default=40, help="of each study (default: %(default)s)")
    two.add_argument(
        "--rounds", type=int, default=5, help="runs of each recommended configuration (default: %(default)s)"
    )
    for parts in (one, two):
        parts.add_argument("--folder", type=Path, default=Path("sro-measured"), help="default: %(default)s")
    return parser.parse_args(argv)


def check(options: argparse.Namespace) -> None:
    """Raise InvalidInput for a wrong option."""
    check_numbers(options, replicates=1, trials=1, check=8, rounds=1, repetitions=1)
    check_names("--patterns", getattr(options, "patterns", PATTERNS[0]), PATTERNS, ", ".join(PATTERNS))
    check_names("--arrivals", getattr(options, "arrivals", "fixed"), ("fixed", "random"), "fixed or random")
    for text in getattr(options, "runs", "1").split(","):
        try:
            fine = float(text) > 0
        except ValueError:
            fine = False
        if not fine:
            raise InvalidInput.of("--runs", text, "numbers above 0")


# --- the service, the agent and the applications


class Bench(measuring.Bench):
    """A service and an agent; it also runs applications without them, as the agent would."""

    def run(self, application: str, values: Values | None) -> float:
        """Run an application and return its running time in seconds. With `values` None the optimizer is off."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        command, environment = self.command(application, work)
        chosen = {"SRO_ENABLE": "0"} if values is None else dict(zip(PARAMETERS, map(str, values), strict=True))
        (self.build() / "files" / "data").read_bytes()  # into memory, as the component's header does
        done = subprocess.run(command, env={**environment, **chosen}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ScriptError(f"{application} ended with status {done.returncode}: {done.stderr}")
        return float(json.loads(done.stdout)["seconds"])

    def noise(self, arrivals: str, seconds: float) -> AbstractContextManager[None]:
        """Start two writers and a reader of the file again and again, at fixed or random times."""
        return self.disturbed(NOISE, gaps(arrivals, seconds), lambda seed: ["-s", str(seed)])


def default() -> Values:
    """Return the literal default, which is the library's own: its sizes are for files of 100 GB."""
    return (100, 10485756, 2, 209715120)


def scaled() -> Values:
    """Return the default of the component, whose sizes are scaled to the file of 256 MiB."""
    return tuple(COMPONENT["parameters"][name]["default"] for name in PARAMETERS)


def shown(values: Values) -> str:
    """Return a configuration as text: window, bin, threshold, prefetch."""
    length, binsize, threshold, prefetch = (int(str(value)) for value in values)
    return f"{length}, {size(binsize)}, {threshold}, {size(prefetch)}"


def size(number: int) -> str:
    """Return a number of bytes as text, in the largest unit of which it is a multiple."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if number % unit == 0:
            return f"{number // unit} {name}"
    return f"{number / (1 << 20):.0f} MiB"


# --- patterns


def patterns(bench: Bench, options: argparse.Namespace) -> None:
    """Measure the table of [robert-2021, section 2.2.3]."""
    rows, controls = [], []
    for pattern in options.patterns.split(","):
        study, grid = bench.explore(pattern, STUDY, options)
        best, run = best_of(grid, PARAMETERS), partial(bench.run, pattern)
        others = [None, default(), scaled()]
        cells, found = bench.compare(study, PARAMETERS, others, best, options.rounds, run, defaults=2)
        rows.append([*cells, shown(found), shown(best)])
        header = ["pattern", "off", "literal default", "scaled default", "best found", "best of the grid"]
        header += ["less than literal", "less than scaled"]
        names = [*header, "final check against scaled", "found", "of the grid"]
        write(bench.folder / "patterns.md", names, rows)
        # Nothing is injected here: what a recommendation is worth on the agent's own disk.
        contenders = [*others, found, best]
        local = bench.in_turns(f"{pattern}-local", contenders, options.rounds, partial(bench.run, f"{pattern}-local"))
        times = [f"{statistics.median(local[values]):.3f} s" for values in contenders]
        gains = [measuring.gain(local[values], local[found]) for values in (default(), scaled())]
        controls.append([pattern, *times, *gains])
        write(bench.folder / "control.md", header, controls)


# --- noise


def noise(bench: Bench, options: argparse.Namespace) -> None:
    """Measure the comparison of [robert-2021, chapter 5].

    Repetitions are the outermost loop, so that slow changes of the machine disturb all policies alike.
    """
    spaces = [float(text) for text in options.runs.split(",")]
    run_seconds = statistics.median(bench.run(NOISY, default()) for _ in range(options.rounds))
    screen.print(f"{NOISY} with the defaults, without noise: {run_seconds:.2f} s")
    described = load(bench.client, WORKLOAD / "study.yml")
    assert described.spec.execution is not None
    execution = replace(described.spec.execution, application=NOISY)
    own = {"algorithm": "gp", "max_trials": options.trials, "final_check": None, "execution": execution}
    spec = replace(described.spec, **own)
    studies: dict[tuple[float, str], list[Study]] = defaultdict(list)
    for repetition in range(options.repetitions):
        for space in spaces:
            with bench.noise(options.arrivals, space * run_seconds):
                for policy, resampling in POLICIES.items():
                    wanted = replace(spec, resampling=resampling, seed=repetition)
                    name = f"noise-{space:g}-{policy}-{repetition}"
                    study = bench.client.create_from_spec(name, wanted, load_if_exists=True)
                    study.wait()
                    studies[space, policy].append(study)
    found = {study.name: study.recommendation for group in studies.values() for study in group}
    recommended = {name: values_of(one.params, PARAMETERS) for name, one in found.items() if one is not None}
    run = partial(bench.run, NOISY)
    quiet = medians(bench.in_turns("noise", [default(), *recommended.values()], options.rounds, run))
    best = min(quiet, key=lambda values: quiet[values])
    # the best configuration without noise need not be the best one with noise
    noisy = {}
    for space in spaces:
        names = [study.name for policy in POLICIES for study in studies[space, policy]]
        own = [recommended[name] for name in names if name in recommended]
        with bench.noise(options.arrivals, space * run_seconds):
            noisy[space] = medians(bench.in_turns(f"noise-{space:g}", [default(), best, *own], options.rounds, run))
    rows = []
    for (space, policy), group in studies.items():
        taken = [recommended.get(study.name, default()) for study in group]
        counts = [Counter(values_of(trial.params, PARAMETERS) for trial in study.trials()) for study in group]
        durations = [sum(trial.seconds or 0.0 for trial in study.trials()) for study in group]
        rows.append(
            [
                f"{space:g} ({space * run_seconds:.1f} s)",
                policy,
                *judged(quiet, taken),
                *judged(noisy[space], taken),
                f"{statistics.fmean(durations):.0f} s",
                f"{statistics.fmean(map(len, counts)):.1f}",
            ]
        )
    rows.sort(key=lambda row: spaces.index(float(row[0].split()[0])))
    header = ["runs between arrivals", "policy", "from the best", "worst of them", "less than default"]
    header += ["from the best, in the noise", "worst of them", "less than default", "duration", "configurations"]
    write(bench.folder / "noise.md", header, rows)


def judged(seconds: Mapping[Values | None, float], taken: Sequence[Values]) -> list[str]:
    """Return the mean and the worst distance from the lowest time, and the mean gain over the default, as texts."""
    times, least = [seconds[values] for values in taken], min(seconds.values())
    ratios = (
        statistics.fmean(times) / least - 1,
        max(times) / least - 1,
        1 - statistics.fmean(times) / seconds[default()],
    )
    return [f"{100 * ratio:.1f} %" for ratio in ratios]


def medians(seconds: Mapping[Values | None, Sequence[float]]) -> dict[Values | None, float]:
    """Return the median seconds of each configuration."""
    return {values: statistics.median(own) for values, own in seconds.items()}


if __name__ == "__main__":
    sys.exit(main())
