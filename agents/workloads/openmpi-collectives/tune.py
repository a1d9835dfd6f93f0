"""Tune Open MPI's collectives on the agents of a Trimtab service, and write a rules file for mpirun.

Each collective, message size and number of ranks has a study of its own. The best configurations of one size are
measured first at the next larger size. A configuration that is faster than Open MPI's own decision beyond noise becomes
a rule. Then mpirun runs with the file and without it, in turns: on this machine, or where --launcher says.
"""

import argparse
import json
import math
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import algorithms
from rich import box
from rich.table import Table
from rules import Rule, render

import trimtab
from trimtab.errors import InvalidInput
from trimtab.study import Study

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent))

from scripts import (  # noqa: E402  # in the parent folder
    PauseNotices,
    ScriptError,
    check_interval,
    check_names,
    check_numbers,
    earlier_study,
    exit_status,
    parser_of,
    progress_bar,
    remarks,
    say_if_no_agent,
    screen,
)

COMPONENT, METRIC = "openmpi-collectives", "median_us"
# Configurations that a size takes over from the next smaller one.
TAKEN_OVER = 3
POLL_SECONDS = 0.5
# Fewer pairs, or trials of a final check, give no interval of 95 %.
LEAST_PAIRS, LEAST_CHECK, LEVEL = 6, 8, 0.95
EXAMPLE = """\
example, with the service of `make up` and an agent that offers this folder:
  export TRIMTAB_URL=127.0.0.1:8471 TRIMTAB_TOKEN=$(cat data/admin-token)
  python agents/workloads/openmpi-collectives/tune.py --collectives bcast,reduce --sizes 4096,65536,1048576 \\
      --trials 40 --rules rules.conf
  mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename $PWD/rules.conf ...

with agents that run trials through Slurm, verifying on a node of the kind that they have measured on:
  python .../tune.py --rules /shared/rules.conf --launcher "salloc --quiet --nodes=1 --exclusive --partition=main"

The same command goes on where it was interrupted. Studies are called NAME-COLLECTIVE-SIZE-RANKSranks.
"""


@dataclass(frozen=True)
class Case:
    """The subject of one study. `size` is in bytes."""

    collective: str
    ranks: int
    size: int

    def __str__(self) -> str:
        return f"{self.collective}, {self.size} bytes, {self.ranks} ranks"


@dataclass(frozen=True)
class Outcome:
    """The result of a study. `text` gives the gain in its final check, with the interval."""

    case: Case
    params: trimtab.Params
    text: str
    proven: bool


@dataclass(frozen=True)
class Gain:
    """Median latencies in microseconds, and the median saving of pairs of runs as a share, with its interval."""

    default_us: float
    ruled_us: float
    estimate: float
    low: float
    high: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong, or the service or Open MPI fails."""
    options = arguments(argv)

    def work() -> None:
        try:
            run(options)
        except algorithms.OpenMpiError as error:
            raise ScriptError(str(error)) from error

    return exit_status(work, "Stopped. The studies go on without this command; the same command goes on with them.")


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, but not the lists in it."""
    parser = parser_of(__doc__, EXAMPLE)
    add = parser.add_argument
    add("--collectives", default=",".join(algorithms.COLLECTIVES), help="a list with commas (default: %(default)s)")
    add("--sizes", default="4096,65536,1048576", help="sizes of messages, in bytes (default: %(default)s)")
    add("--ranks", default="4", help="numbers of processes (default: %(default)s)")
    add("--trials", type=int, default=40, help="trials of each study before its final check (default: %(default)s)")
    add("--check", type=int, default=30, help="trials of each final check, at most (default: %(default)s)")
    add("--parallel", type=int, default=1, help="collectives tuned at the same time (default: %(default)s)")
    add("--rules", type=Path, default=Path("rules.conf"), help="the file to write (default: %(default)s)")
    add("--pairs", type=int, default=15, help="pairs of runs that verify each rule, 0: none (default: %(default)s)")
    add(
        "--launcher",
        type=shlex.split,
        default=[],
        metavar="WORDS",
        help="a command that starts the verification where the trials have run, such as "
        "'salloc --quiet --nodes=1 --exclusive'; --rules must be in a folder that exists there, too "
        "(default: the verification runs on this machine)",
    )
    add("--name", default="openmpi", help="how the studies' names begin (default: %(default)s)")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> None:
    """Tune, write the file and verify it."""
    check_options(options)
    numbers = algorithms.identifiers()
    if options.pairs:
        # before hours of tuning
        if options.launcher:
            remarks.print(
                f"Trying whether the rules can be verified by {shlex.join(options.launcher)} ...", markup=False
            )
        follow_verification(options, [])
    with trimtab.Client() as client:
        cases = parse_cases(options, client.component(COMPONENT))
        say_if_no_agent(client, "the studies wait for one")
        outcomes = tune(client, cases, options)
    rules = [rule_for(outcome, numbers) for outcome in outcomes]
    write(options.rules, render(rules))
    screen.print(f"Rules written to {options.rules}", soft_wrap=True)
    ruled = [rule for rule in rules if rule.algorithm]
    gains = verify(options, ruled) if options.pairs and ruled else {}
    show(outcomes, gains)


# --- arguments


def check_options(options: argparse.Namespace) -> None:
    """Raise InvalidInput for a wrong number, or a rules file in a folder that does not exist."""
    check_numbers(options, trials=1, parallel=1)
    if options.check < LEAST_CHECK:
        raise InvalidInput.of("--check", options.check, f"{LEAST_CHECK} or more, which an interval needs")
    check_interval("--pairs", options.pairs, LEAST_PAIRS)
    if not options.rules.absolute().parent.is_dir():
        raise InvalidInput.of("--rules", str(options.rules), "a file in a folder that exists")


def parse_cases(options: argparse.Namespace, component: trimtab.Component) -> list[Case]:
    """Return the cases that the lists name, by collective and ranks, with ascending sizes.

    Raises:
        InvalidInput: the component does not allow a name or number.
    """
    space = {parameter.name: parameter for parameter in component.space}
    offered = [name for name in algorithms.COLLECTIVES if f"{name}_algorithm" in space]
    allowed = f"{', '.join(offered)}, with commas between them"
    collectives = check_names("--collectives", options.collectives, offered, allowed)
    known, count = space["bytes"], space["ranks"]
    assert isinstance(known, trimtab.Ordinal)
    assert isinstance(count, trimtab.Int)
    sizes = whole_numbers(
        "--sizes", options.sizes, lambda number: number in known.values, ", ".join(map(str, known.values))
    )
    ranks = whole_numbers(
        "--ranks", options.ranks, lambda number: count.min <= number <= count.max, f"{count.min} to {count.max}"
    )
    return [Case(name, number, size) for name in dict.fromkeys(collectives) for number in ranks for size in sizes]


def whole_numbers(option: str, text: str, fits: Callable[[int], bool], allowed: str) -> list[int]:
    """Return the numbers in a list with commas, each once, ascending. Raise InvalidInput for a wrong one."""
    for word in (words := text.split(",")):
        if not (word.isascii() and word.isdecimal() and fits(int(word))):
            raise InvalidInput.of(option, word, f"{allowed}; several with commas between them")
    return sorted({int(word) for word in words})


# --- tuning


def tune(client: trimtab.Client, cases: Sequence[Case], options: argparse.Namespace) -> list[Outcome]:
    """Return the outcome of every case.

    The sizes of one collective and number of ranks form a series and follow each other. `--parallel` is the number of
    series at the same time.
    """
    series: dict[tuple[str, int], list[Case]] = {}
    for case in cases:
        series.setdefault((case.collective, case.ranks), []).append(case)
    outcomes: list[Outcome] = []
    notices = PauseNotices()
    waiting = [tune_series(client, own, options, outcomes) for own in series.values()]
    with progress_bar() as bar:
        total = options.trials + options.check
        running = [(one, study, bar.add_task(study.name, total=total)) for one, study in begin(waiting, options)]
        while running:
            time.sleep(POLL_SECONDS)
            for entry in running:
                one, study, task = entry
                status = study.refresh()
                bar.update(task, completed=status.finished_count)
                notices.update(study, status)
                if status.state.finished:
                    bar.update(task, completed=total)
                    running.remove(entry)
                    following = next(one, None)
                    fresh = [(one, following)] if following else begin(waiting, options, 1)
                    running += [(new, its, bar.add_task(its.name, total=total)) for new, its in fresh]
                    break
    return sorted(outcomes, key=lambda outcome: cases.index(outcome.case))


def begin(
    waiting: list[Iterator[Study]], options: argparse.Namespace, count: int | None = None
) -> list[tuple[Iterator[Study], Study]]:
    """Begin as many series as `--parallel` allows, each with its first study."""
    begun = []
    for _ in range(min(len(waiting), count or options.parallel)):
        one = waiting.pop(0)
        begun.append((one, next(one)))
    return begun


def tune_series(
    client: trimtab.Client, cases: Sequence[Case], options: argparse.Namespace, outcomes: list[Outcome]
) -> Iterator[Study]:
    """Yield the study of each case, with ascending sizes. The caller continues when that study has ended."""
    best: list[trimtab.Params] = []
    for case in cases:
        study, starts = open_study(client, case, options, best)
        yield study
        for start in starts:
            client.delete_study(start.name)
        best = best_configurations(study)
        outcomes.append(outcome_of(case, study))
        screen.print(f"{case}: {outcomes[-1].text}", soft_wrap=True)


def open_study(
    client: trimtab.Client, case: Case, options: argparse.Namespace, best: list[trimtab.Params]
) -> tuple[Study, list[Study]]:
    """Return the study of this case, which is that of an earlier run or a new one that begins with `best`, and the
    studies that have measured these configurations.
    """
    name = f"{options.name}-{case.collective}-{case.size}-{case.ranks}ranks"
    if earlier := earlier_study(client, name, "its result is taken"):
        return earlier, []
    space = space_for(case, client.component(COMPONENT).space)
    starts = []
    for number, own in enumerate(best, start=1):
        params: trimtab.Params = {**own, "bytes": case.size, "ranks": case.ranks}
        starts.append(measure(client, f"{name}-start{number}", case, space, params))
    study = client.create_study(
        name,
        space=space,
        objectives=[trimtab.Minimize(METRIC, unit="us")],
        component=COMPONENT,
        application=case.collective,
        max_trials=options.trials,
        final_check=trimtab.FinalCheck(max_trials=options.check, level=LEVEL, effects=0),
        load_if_exists=True,
    )
    for start in starts:
        for trial in start.trials(states=[trimtab.TrialState.COMPLETED]):
            study.add_trial(trial.params, trial.metrics)
    return study, starts


def space_for(case: Case, space: Sequence[trimtab.Parameter]) -> list[trimtab.Parameter]:
    """Return the parameters of the collective, with fixed size and ranks.

    Values are left out that have the same effect as others at this size and number of ranks.
    """
    found: list[trimtab.Parameter] = []
    limits = {f"{case.collective}_segmentsize": case.size, f"{case.collective}_fanout": case.ranks}
    for parameter in space:
        if parameter.name in ("bytes", "ranks"):
            found.append(fixed(parameter, getattr(case, {"bytes": "size"}.get(parameter.name, parameter.name))))
        elif isinstance(parameter, trimtab.Ordinal) and parameter.name in limits:
            values = [value for value in parameter.values if int(str(value)) < limits[parameter.name]]
            default = parameter.default if parameter.default in values else values[-1]
            found.append(replace(parameter, values=values, default=default))
        elif parameter.name.startswith(f"{case.collective}_"):
            found.append(parameter)
    return found


def fixed(parameter: trimtab.Parameter, value: object) -> trimtab.Parameter:
    """Return a parameter of the same name that has only this value."""
    return trimtab.Categorical(parameter.name, [str(value) if isinstance(value, str) else int(str(value))])


def measure(
    client: trimtab.Client, name: str, case: Case, space: Sequence[trimtab.Parameter], params: trimtab.Params
) -> Study:
    """Have an agent measure one configuration, by a small study of that configuration alone.

    A user can add only results to a study.
    """
    study = client.create_study(
        name,
        space=[fixed(parameter, params[parameter.name]) for parameter in space if parameter.name in params],
        objectives=[trimtab.Minimize(METRIC)],
        component=COMPONENT,
        application=case.collective,
        algorithm="random",
        resampling="none",
        final_check=False,
        max_trials=1,
        load_if_exists=True,
    )
    study.wait(progress=False)
    return study


def best_configurations(study: Study) -> list[trimtab.Params]:
    """Return the best few configurations by their median, without size and ranks, except Open MPI's own decision."""
    values: dict[tuple[tuple[str, trimtab.space.Scalar], ...], list[float]] = {}
    for trial in study.trials(states=[trimtab.TrialState.COMPLETED]):
        if algorithms.DEFAULT not in trial.params.values():
            values.setdefault(tuple(own_params(trial.params).items()), []).append(trial.metrics[METRIC])
    ranked = sorted(values, key=lambda params: statistics.median(values[params]))
    return [dict(params) for params in ranked[:TAKEN_OVER]]


def own_params(params: Mapping[str, trimtab.space.Scalar]) -> trimtab.Params:
    """Return a configuration without size and ranks, sorted by name."""
    return {name: params[name] for name in sorted(params) if name not in ("bytes", "ranks")}


def outcome_of(case: Case, study: Study) -> Outcome:
    """Return the outcome of a study that has ended."""
    found, verdict = study.recommendation, study.verdict
    if found is None or verdict is None:
        return Outcome(case, {}, f"nothing found: {study.status.reason or 'no trial completed'}", proven=False)
    return Outcome(case, own_params(found.params), verdict.text, proven=verdict.proven)


# --- the file


def rule_for(outcome: Outcome, numbers: dict[str, dict[str, int]]) -> Rule:
    """Return the rule for a case: the configuration found if its gain is proven, else Open MPI's own decision."""
    case = outcome.case
    if not outcome.proven:
        return Rule(case.collective, case.ranks, case.size, 0, comment=outcome.text)
    value = {name.removeprefix(f"{case.collective}_"): value for name, value in outcome.params.items()}
    return Rule(
        case.collective,
        case.ranks,
        case.size,
        numbers[case.collective][str(value["algorithm"])],
        fanout=int(value.get("fanout", 0)),
        segment=int(value.get("segmentsize", 0)),
        comment=f"{value['algorithm']}: {outcome.text}",
    )


def write(path: Path, text: str) -> None:
    """Write the file completely or not at all. Raise InvalidInput if that fails."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_text(text)
        partial.replace(path)
    except OSError as error:
        raise InvalidInput("unwritable_file", f"{path} cannot be written: {error.strerror}") from error


# --- verifying it


def verify(options: argparse.Namespace, rules: Sequence[Rule]) -> dict[Case, Gain]:
    """Have verify.py run mpirun with the file and without it, in turns; return the gains. Raise OpenMpiError."""
    measured: dict[Case, list[tuple[float, float]]] = {
        Case(rule.collective, rule.ranks, rule.size): [] for rule in rules
    }
    cases = list(measured)
    with progress_bar() as bar:
        task = bar.add_task("Verifying: default and rules in turn", total=options.pairs * len(rules))

        def take(number: int, without: float, ruled: float) -> None:
            measured[cases[number]].append((without, ruled))
            bar.advance(task)

        node = follow_verification(options, cases, take)
    screen.print(f"Verified on {node}", soft_wrap=True)
    return {case: gain_of(pairs) for case, pairs in measured.items()}


def follow_verification(
    options: argparse.Namespace, cases: Sequence[Case], take: Callable[[int, float, float], None] | None = None
) -> str:
    """Run verify.py, pass each of its pairs to `take`, and return the node on which it ran.

    Without cases it only checks whether verification is possible. Raise OpenMpiError with its message if it fails.
    """
    command = [*options.launcher, sys.executable, str(FOLDER / "verify.py"), str(options.rules.absolute())]
    command += [f"--pairs={options.pairs}", *(f"--case={case.collective},{case.ranks},{case.size}" for case in cases)]
    node = ""
    with tempfile.TemporaryFile("w+") as errors:
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        except OSError as error:
            raise algorithms.OpenMpiError(f"--launcher: {command[0]!r} cannot be started: {error.strerror}") from None
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                message = json.loads(line)
                if take and "case" in message:
                    take(message["case"], message["without"], message["ruled"])
                node = message.get("node", node)
        if process.returncode != 0:
            errors.seek(0)
            said = errors.read().strip().removeprefix("error: ")
            raise algorithms.OpenMpiError(said or f"{' '.join(command)} ended with status {process.returncode}")
    return node


def gain_of(pairs: Sequence[tuple[float, float]]) -> Gain:
    """Return the gain from (default, ruled) latencies; the two of a pair were measured directly after each other.

    The interval encloses the median saving with at least 95 %, whatever the distribution: the number of savings below
    it is binomial(n, 1/2) (sign test). Needs `LEAST_PAIRS`.
    """
    savings = sorted(1 - ruled / default for default, ruled in pairs)
    count, rank = len(savings), 0
    while 2 * sum(math.comb(count, below) for below in range(rank + 2)) / 2**count <= 1 - LEVEL:
        rank += 1
    return Gain(
        default_us=statistics.median(default for default, _ in pairs),
        ruled_us=statistics.median(ruled for _, ruled in pairs),
        estimate=statistics.median(savings),
        low=savings[rank],
        high=savings[-1 - rank],
    )


def show(outcomes: Sequence[Outcome], gains: Mapping[Case, Gain]) -> None:
    """Print the table of the rules and of their verification."""
    table = Table("collective", "bytes", "ranks", "rule", "without", "with it", "saved (95 %)", box=box.SIMPLE_HEAD)
    for outcome in outcomes:
        case, gain = outcome.case, gains.get(outcome.case)
        rule = " ".join(str(value) for value in outcome.params.values()) if outcome.proven else "none"
        cells = [case.collective, str(case.size), str(case.ranks), rule]
        if gain is not None:
            interval = f"{100 * gain.estimate:.0f} % ({100 * gain.low:.0f} to {100 * gain.high:.0f})"
            cells += [f"{gain.default_us:.0f} us", f"{gain.ruled_us:.0f} us", interval]
        table.add_row(*cells)
    screen.print(table)
    for case, gain in gains.items():
        if gain.low <= 0:
            text = f"Not confirmed: {case}. Take its line out of the file, or give it more --trials."
            screen.print(text, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
