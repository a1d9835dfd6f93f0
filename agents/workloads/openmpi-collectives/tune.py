"""Tunes Open MPI's collectives on the agents of a Trimtab service, and writes a rules file for mpirun.

Each collective, message size and number of ranks is a study of its own. The best configurations of one size are
measured first at the next greater one. What is faster than Open MPI's own decision beyond noise becomes a rule; then
mpirun is run with the file and without it, in turns: on this machine, or where --launcher says.
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
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rules import Rule, render

import trimtab
from trimtab.errors import InvalidInput, NotFound
from trimtab.study import Study

COMPONENT, METRIC = "openmpi-collectives", "median_us"
FOLDER = Path(__file__).parent
# Configurations that a size takes over from the one below it.
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

The same command again goes on where it was interrupted. Studies are called NAME-COLLECTIVE-SIZE-RANKSranks.
"""

# A file or a pipe has no width of its own.
screen = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
remarks = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Case:
    """What one study is for. `size` in bytes."""

    collective: str
    ranks: int
    size: int

    def __str__(self) -> str:
        return f"{self.collective}, {self.size} bytes, {self.ranks} ranks"


@dataclass(frozen=True)
class Outcome:
    """What a study found. `gain` is of its final check: a share of the default's latency, with its interval."""

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
    """Runs the command line; 1 where something is wrong with it or with what it needs."""
    options = arguments(argv)
    try:
        return run(options)
    except KeyboardInterrupt:
        remarks.print("Stopped. Studies that have begun go on; the same command goes on with them.")
        return 130
    except (trimtab.TrimtabError, algorithms.OpenMpiError) as error:
        remarks.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line, its lists not yet looked at."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--collectives", default=",".join(algorithms.COLLECTIVES), help="a list with commas (default: %(default)s)")
    add("--sizes", default="4096,65536,1048576", help="of messages, in bytes (default: %(default)s)")
    add("--ranks", default="4", help="numbers of processes (default: %(default)s)")
    add("--trials", type=int, default=40, help="of each study before its final check (default: %(default)s)")
    add("--check", type=int, default=30, help="trials of each final check, at most (default: %(default)s)")
    add("--parallel", type=int, default=1, help="collectives tuned at the same time (default: %(default)s)")
    add("--rules", type=Path, default=Path("rules.conf"), help="the file to write (default: %(default)s)")
    add("--pairs", type=int, default=15, help="pairs of runs that verify each rule, 0: none (default: %(default)s)")
    add(
        "--launcher",
        type=shlex.split,
        default=[],
        metavar="WORDS",
        help="what starts the verification where the trials have run, such as 'salloc --quiet --nodes=1 --exclusive'; "
        "--rules must be in a folder that is seen there (default: it runs on this machine)",
    )
    add("--name", default="openmpi", help="what the studies' names begin with (default: %(default)s)")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> int:
    """Tunes, writes the file, verifies it."""
    check_numbers(options)
    numbers = algorithms.identifiers()
    if options.pairs:
        # now, and not after hours
        if options.launcher:
            remarks.print(
                f"Trying whether the rules can be verified by {shlex.join(options.launcher)} ...", markup=False
            )
        follow_verification(options, [])
    with trimtab.Client() as client:
        cases = parse_cases(options, client.component(COMPONENT))
        if not any(agent.online for agent in client.list_agents()):
            remarks.print("No agent is online: the studies wait for one.")
        outcomes = tune(client, cases, options)
    rules = [rule_for(outcome, numbers) for outcome in outcomes]
    write(options.rules, render(rules))
    screen.print(f"Rules written to {options.rules}", soft_wrap=True)
    ruled = [rule for rule in rules if rule.algorithm]
    gains = verify(options, ruled) if options.pairs and ruled else {}
    show(outcomes, gains)
    return 0


# --- what is asked for


def check_numbers(options: argparse.Namespace) -> None:
    """Raises InvalidInput for a number that makes no sense, or a place where no file can be."""
    for name in ("trials", "parallel"):
        if getattr(options, name) < 1:
            raise InvalidInput.of(f"--{name}", getattr(options, name), "1 or more")
    if options.check < LEAST_CHECK:
        raise InvalidInput.of("--check", options.check, f"{LEAST_CHECK} or more, which an interval needs")
    if options.pairs != 0 and options.pairs < LEAST_PAIRS:
        raise InvalidInput.of("--pairs", options.pairs, f"0, or {LEAST_PAIRS} or more, which an interval needs")
    if not options.rules.absolute().parent.is_dir():
        raise InvalidInput.of("--rules", str(options.rules), "a file in a folder that exists")


def parse_cases(options: argparse.Namespace, component: trimtab.Component) -> list[Case]:
    """The cases that the lists name, by collective and ranks, with ascending sizes.

    Raises:
        InvalidInput: a name or number that the component does not allow.
    """
    space = {parameter.name: parameter for parameter in component.space}
    offered = [name for name in algorithms.COLLECTIVES if f"{name}_algorithm" in space]
    for name in (collectives := options.collectives.split(",")):
        if name not in offered:
            raise InvalidInput.of("--collectives", name, f"{', '.join(offered)}, with commas between them")
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
    """The numbers in a list with commas, each once, ascending. Raises InvalidInput."""
    for word in (words := text.split(",")):
        if not (word.isascii() and word.isdecimal() and fits(int(word))):
            raise InvalidInput.of(option, word, f"{allowed}; several with commas between them")
    return sorted({int(word) for word in words})


# --- tuning


def tune(client: trimtab.Client, cases: Sequence[Case], options: argparse.Namespace) -> list[Outcome]:
    """The outcome of every case. Sizes of one collective and number of ranks follow each other; of such series,
    `--parallel` are at work at a time."""
    series: dict[tuple[str, int], list[Case]] = {}
    for case in cases:
        series.setdefault((case.collective, case.ranks), []).append(case)
    outcomes: list[Outcome] = []
    paused: set[str] = set()
    waiting = [tune_series(client, own, options, outcomes) for own in series.values()]
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=remarks, disable=not remarks.is_terminal) as bar:
        total = options.trials + options.check
        running = [(one, study, bar.add_task(study.name, total=total)) for one, study in begin(waiting, options)]
        while running:
            time.sleep(POLL_SECONDS)
            for entry in running:
                one, study, task = entry
                status = study.refresh()
                bar.update(task, completed=status.finished_count)
                if status.state is trimtab.StudyState.PAUSED and study.name not in paused:
                    paused.add(study.name)
                    why = f"Study {study.name} is paused: {status.reason or 'by its user'}."
                    remarks.print(f"{why} To go on: trimtab study resume {study.name}", markup=False, soft_wrap=True)
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
    """Begins as many series as may be at work, each with its first study."""
    begun = []
    for _ in range(min(len(waiting), count or options.parallel)):
        one = waiting.pop(0)
        begun.append((one, next(one)))
    return begun


def tune_series(
    client: trimtab.Client, cases: Sequence[Case], options: argparse.Namespace, outcomes: list[Outcome]
) -> Iterator[Study]:
    """Gives the study of each case, the sizes ascending; to be continued when that has ended."""
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
    """The study of this case: the one of an earlier run, or a new one that begins with `best`; and the studies that
    measured these."""
    name = f"{options.name}-{case.collective}-{case.size}-{case.ranks}ranks"
    try:
        study = client.get_study(name)
    except NotFound:
        pass
    else:
        so_far = "has ended: its result is taken (another --name measures anew)" if study.state.finished else "goes on"
        remarks.print(f"Study {name} {so_far}", soft_wrap=True)
        return study, []
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
        final_check=trimtab.FinalCheck(max_trials=options.check, level=LEVEL),
        load_if_exists=True,
    )
    for start in starts:
        for trial in start.trials(states=[trimtab.TrialState.COMPLETED]):
            study.add_trial(trial.params, trial.metrics)
    return study, starts


def space_for(case: Case, space: Sequence[trimtab.Parameter]) -> list[trimtab.Parameter]:
    """The collective's own parameters without values that mean the same at this size and number of ranks; size and
    ranks themselves are fixed."""
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
    """A parameter of the same name that has this one value."""
    return trimtab.Categorical(parameter.name, [str(value) if isinstance(value, str) else int(str(value))])


def measure(
    client: trimtab.Client, name: str, case: Case, space: Sequence[trimtab.Parameter], params: trimtab.Params
) -> Study:
    """Has an agent measure one configuration. A study takes from its user nothing but results, so this is done by a
    small study of that configuration alone."""
    study = client.create_study(
        name,
        space=[fixed(parameter, params[parameter.name]) for parameter in space if parameter.name in params],
        objectives=[trimtab.Minimize(METRIC)],
        component=COMPONENT,
        application=case.collective,
        algorithm="random",
        resampling="none",
        max_trials=1,
        load_if_exists=True,
    )
    study.wait(progress=False)
    return study


def best_configurations(study: Study) -> list[trimtab.Params]:
    """The best few by their median, Open MPI's own decision aside, without size and ranks."""
    values: dict[tuple[tuple[str, trimtab.space.Scalar], ...], list[float]] = {}
    for trial in study.trials(states=[trimtab.TrialState.COMPLETED]):
        if algorithms.DEFAULT not in trial.params.values():
            values.setdefault(tuple(own_params(trial.params).items()), []).append(trial.metrics[METRIC])
    ranked = sorted(values, key=lambda params: statistics.median(values[params]))
    return [dict(params) for params in ranked[:TAKEN_OVER]]


def own_params(params: Mapping[str, trimtab.space.Scalar]) -> trimtab.Params:
    """Without size and ranks, sorted."""
    return {name: params[name] for name in sorted(params) if name not in ("bytes", "ranks")}


def outcome_of(case: Case, study: Study) -> Outcome:
    """What the study, which has ended, has found."""
    found, verdict = study.recommendation, study.verdict
    if found is None or verdict is None:
        return Outcome(case, {}, f"nothing found: {study.status.reason or 'no trial worked'}", proven=False)
    return Outcome(case, own_params(found.params), verdict.text, proven=verdict.low > 0)


# --- the file


def rule_for(outcome: Outcome, numbers: dict[str, dict[str, int]]) -> Rule:
    """The rule: what was found where it is proven to be faster, else Open MPI's own decision."""
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
    """Writes the file, whole or not at all. Raises InvalidInput."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_text(text)
        partial.replace(path)
    except OSError as error:
        raise InvalidInput("unwritable_file", f"{path} cannot be written: {error.strerror}") from error


# --- verifying it


def verify(options: argparse.Namespace, rules: Sequence[Rule]) -> dict[Case, Gain]:
    """Has verify.py run mpirun with the file and without, in turns. Raises OpenMpiError."""
    measured: dict[Case, list[tuple[float, float]]] = {
        Case(rule.collective, rule.ranks, rule.size): [] for rule in rules
    }
    cases = list(measured)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=remarks, disable=not remarks.is_terminal) as bar:
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
    """Starts verify.py, without cases to see whether it can work; gives each of its pairs to `take`, and where it ran.
    Raises OpenMpiError with what it says where it fails."""
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
                told = json.loads(line)
                if take and "case" in told:
                    take(told["case"], told["without"], told["ruled"])
                node = told.get("node", node)
        if process.returncode != 0:
            errors.seek(0)
            said = errors.read().strip().removeprefix("error: ")
            raise algorithms.OpenMpiError(said or f"{' '.join(command)} ended with status {process.returncode}")
    return node


def gain_of(pairs: Sequence[tuple[float, float]]) -> Gain:
    """The gain from (default, ruled) latencies, each pair measured one right after the other.

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
    """The table of what was found, and of how the file proved itself."""
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
