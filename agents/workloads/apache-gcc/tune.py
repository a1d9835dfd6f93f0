"""Tune GCC's flags for Apache httpd on the agents of a Trimtab service, for any of several criteria.

Before the search it measures -O0, -O1, -O2, -O3, -Os and -Ofast, and random configurations, which show what each flag
changes: the configurations of a search are too similar to each other for that. In the end it measures the best
configuration of each criterion, the best on average, and the six levels in turns, round by round (the final check). It
prints the Pareto set, a table of the gains over -O2 and over the best level, with intervals, and which flags matter for
which criterion.
"""

import argparse
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import analysis
from analysis import Criterion
from rich import box
from rich.table import Table
from space import DEFAULT_LEVEL, LEVEL, LEVELS, OF_LEVEL

import trimtab
from trimtab.errors import InvalidInput
from trimtab.study import Study

sys.path.append(str(Path(__file__).resolve().parents[1]))

from scripts import (  # in the parent folder
    PauseNotices,
    check_interval,
    check_names,
    check_numbers,
    earlier_study,
    exit_status,
    parser_of,
    progress_bar,
    say_if_no_agent,
    screen,
)

COMPONENT = "apache-gcc"
PAGES = ("static-2k", "static-32k", "cgi-2k", "cgi-32k", "mixed")
# metric: unit, and whether more is better
CRITERIA = {
    "requests_per_second": ("1/s", True),
    "ms_per_request": ("ms", False),
    "context_switches": ("per 1,000 requests", False),
    "cpu_us_per_request": ("us", False),
    "cache_misses": ("per 1,000 requests", False),
    "instructions": ("per 1,000 requests", False),
    "binary_bytes": ("bytes", False),
    "build_seconds": ("s", False),
    "build_cpu_seconds": ("s", False),
}
COUNTED = ("cache_misses", "instructions")
SIMULATED = "simulated"
POLL_SECONDS = 0.5
# Fewer rounds give no interval of 95 %.
LEAST_ROUNDS = 6
BALANCED = "all on average"
EXAMPLE = """\
example, with the service of `make up` and an agent that offers this folder, whose prepare.py was run:
  export TRIMTAB_URL=127.0.0.1:8471 TRIMTAB_TOKEN=$(cat data/admin-token)
  python agents/workloads/apache-gcc/tune.py --pages static-2k \\
      --criteria requests_per_second,context_switches,cache_misses,binary_bytes --trials 60

The same command goes on where it was interrupted. The studies are called NAME-PAGES and NAME-PAGES-check.
"""

Values = Mapping[str, float] | None
"""The metrics of one trial of the final check. None: the trial failed."""


@dataclass(frozen=True)
class Candidate:
    """A configuration of the final check. `titles` are the criteria of which it is the best."""

    titles: tuple[str, ...]
    params: trimtab.Params


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or the service fails."""
    options = arguments(argv)
    return exit_status(
        lambda: run(options), "Stopped. The studies go on without this command; the same command goes on with them."
    )


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, but not the lists in it."""
    parser = parser_of(__doc__, EXAMPLE)
    add = parser.add_argument
    add("--pages", default=PAGES[0], help=f"one of {', '.join(PAGES)} (default: %(default)s)")
    add(
        "--criteria",
        default="requests_per_second,context_switches,cache_misses,binary_bytes",
        help=f"a list with commas, of {', '.join(CRITERIA)} (default: %(default)s)",
    )
    add("--trials", type=int, default=60, help="all trials but the final check's (default: %(default)s)")
    add("--repetitions", type=int, default=2, help="times each level is measured at first (default: %(default)s)")
    add("--screening", type=int, default=16, help="random configurations measured at first (default: %(default)s)")
    add("--rounds", type=int, default=8, help="rounds of the final check, 0: none (default: %(default)s)")
    add("--algorithm", default="auto", help="the algorithm of the search (default: %(default)s)")
    add("--name", default="apache", help="how the studies' names begin (default: %(default)s)")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> None:
    """Search, run the final check, and print the results."""
    criteria = parse_criteria(options)
    with trimtab.Client() as client:
        component = client.component(COMPONENT)
        say_if_no_agent(client, "the study waits for one")
        space = component.space
        search = open_search(client, options, criteria, space)
        follow(search, "Search", options.trials)
        trials = completed(search)
        if not trials:
            raise trimtab.TrimtabError("nothing_measured", f"Study {search.name} has no completed trial.")
        points = analysis.medians(trials)
        known = {analysis.key(params): params for params, _ in trials}
        show_counter(trials)
        show_pareto(search, points, known, criteria)
        if options.rounds:
            check(client, options, search, space, criteria, points, known)
        show_effects(points, known, criteria, space)


# --- arguments


def parse_criteria(options: argparse.Namespace) -> list[Criterion]:
    """Return the criteria. Raise InvalidInput for a wrong name or number."""
    check_names("--pages", options.pages, PAGES, f"one of {', '.join(PAGES)}")
    allowed = f"{', '.join(CRITERIA)}, with commas between them"
    names = check_names("--criteria", options.criteria, list(CRITERIA), allowed)
    check_numbers(options, repetitions=1, screening=0)
    # the agents may have begun with a suggestion or two before the study is paused
    least = options.repetitions * len(LEVELS) + options.screening + 3
    if options.trials < least:
        allowed = f"{least} or more: levels and random configurations alone take {least - 3}"
        raise InvalidInput.of("--trials", options.trials, allowed)
    check_interval("--rounds", options.rounds, LEAST_ROUNDS)
    return [Criterion(name, CRITERIA[name][1]) for name in dict.fromkeys(names)]


def plain(level: str, space: Sequence[trimtab.Parameter]) -> trimtab.Params:
    """Return the configuration that is this level without any flag."""
    params: trimtab.Params = {}
    for parameter in space:
        params[parameter.name] = level if parameter.name == LEVEL else default_of(parameter)
    return params


def screening(count: int, space: Sequence[trimtab.Parameter]) -> list[trimtab.Params]:
    """Return random configurations, the same ones each time.

    They have the levels in turn, except -O0, at which most flags do nothing.
    """
    chance = random.Random(0)
    levels = [level for level in LEVELS if level != "O0"]
    found: list[trimtab.Params] = []
    for at in range(count):
        drawn: trimtab.Params = {one.name: chance.choice(list(values_of(one))) for one in space}
        found.append({**drawn, LEVEL: levels[at % len(levels)]})
    return found


def values_of(parameter: trimtab.Parameter) -> Sequence[trimtab.space.Scalar]:
    """Return all values of a parameter of this component."""
    return parameter.values if isinstance(parameter, trimtab.Categorical) else (False, True)


def default_of(parameter: trimtab.Parameter) -> trimtab.space.Scalar:
    """Return the value with which a parameter sets nothing, so that the level decides."""
    if parameter.default is None:
        raise InvalidInput.of(parameter.name, None, "a parameter with a default: is this another component?")
    return parameter.default


# --- studies


def open_search(
    client: trimtab.Client,
    options: argparse.Namespace,
    criteria: Sequence[Criterion],
    space: Sequence[trimtab.Parameter],
) -> Study:
    """Return the study of an earlier run, or a new one that begins with the levels and the random configurations."""
    rounds = [[plain(level, space) for level in LEVELS] for _ in range(options.repetitions)]
    rounds.append(screening(options.screening, space))
    name = f"{options.name}-{options.pages}"
    return open_study(client, name, options, criteria, space, rounds, options.trials, options.algorithm)


def open_study(
    client: trimtab.Client,
    name: str,
    options: argparse.Namespace,
    criteria: Sequence[Criterion],
    space: Sequence[trimtab.Parameter],
    rounds: Sequence[Sequence[trimtab.Params]],
    trials: int,
    algorithm: str,
) -> Study:
    """Return the study of this name, or a new one that first measures the configurations of the rounds.

    Every second round goes backwards.
    """
    counted = any(criterion.metric in COUNTED for criterion in criteria)
    study = earlier_study(client, name, "its results are taken")
    if study is None:
        study = client.create_study(
            name,
            space=space,
            objectives=[objective(criterion) for criterion in criteria],
            component=COMPONENT,
            final_check=False,
            application=options.pages + ("-counted" if counted else ""),
            algorithm=algorithm,
            resampling="none",
            max_trials=trials,
        )
    if study.state.finished:
        return study
    wanted = [params for number, one in enumerate(rounds) for params in (reversed(one) if number % 2 else one)]
    # an earlier run may have been interrupted after it had enqueued some of them
    missing = wanted[sum(trial.origin == "enqueued" for trial in study.trials()) :]
    if missing and study.state is not trimtab.StudyState.PAUSED:
        # so that no suggestion comes first
        study.pause("its first configurations are being enqueued")
    for params in missing:
        study.enqueue(params)
    if study.state is trimtab.StudyState.PAUSED:
        study.resume()
    return study


def objective(criterion: Criterion) -> trimtab.Objective:
    """Return the objective of a study for a criterion."""
    kind = trimtab.Maximize if criterion.maximize else trimtab.Minimize
    return kind(criterion.metric, unit=CRITERIA[criterion.metric][0])


def follow(study: Study, what: str, total: int, enqueued_only: bool = False) -> None:
    """Wait until the study ends; with `enqueued_only`, until its enqueued trials have ended, and then end it."""
    notices = PauseNotices()
    with progress_bar() as bar:
        task = bar.add_task(f"{what}: {study.name}", total=total)
        while True:
            status = study.refresh()
            bar.update(task, completed=status.finished_count)
            if status.state.finished:
                return
            notices.update(study, status)
            if enqueued_only and status.finished_count >= total:
                waited_for = [trial for trial in study.trials() if trial.origin == "enqueued"]
                if all(trial.state.finished for trial in waited_for):
                    study.complete("the final check is over")
                    return
            time.sleep(POLL_SECONDS)


def completed(study: Study) -> list[tuple[trimtab.Params, Mapping[str, float]]]:
    """Return the configurations and metrics of the completed trials in the order of their numbers."""
    return [(trial.params, trial.metrics) for trial in study.trials(states=[trimtab.TrialState.COMPLETED])]


# --- the final check


def check(
    client: trimtab.Client,
    options: argparse.Namespace,
    search: Study,
    space: Sequence[trimtab.Parameter],
    criteria: Sequence[Criterion],
    points: Mapping[str, Mapping[str, float]],
    known: Mapping[str, trimtab.Params],
) -> None:
    """Measure the candidates and the levels in turns, and print the gains."""
    candidates = choose(points, known, criteria, space)
    levels = {level: plain(level, space) for level in LEVELS}
    compared = {**levels, **{", ".join(one.titles): one.params for one in candidates}}
    rounds = [list(compared.values())] * options.rounds
    total = options.rounds * len(compared)
    name = f"{search.name}-check"
    # the algorithm may have suggested something before the study was paused; this is left out
    study = open_study(client, name, options, criteria, space, rounds, total + 4, "random")
    follow(study, "Final check", total, enqueued_only=True)
    measured: dict[str, list[Values]] = {}
    for trial in study.trials():
        if trial.origin == "enqueued":
            values = trial.metrics if trial.state is trimtab.TrialState.COMPLETED else None
            measured.setdefault(analysis.key(trial.params), []).append(values)
    by_title = {title: measured.get(analysis.key(params), []) for title, params in compared.items()}
    show_measured(by_title, criteria)
    show_gains(by_title, candidates, criteria)


def choose(
    points: Mapping[str, Mapping[str, float]],
    known: Mapping[str, trimtab.Params],
    criteria: Sequence[Criterion],
    space: Sequence[trimtab.Parameter],
) -> list[Candidate]:
    """Return the best configuration of each criterion and the best on average, without the plain levels."""
    levels = {analysis.key(plain(level, space)) for level in LEVELS}
    searched = {name: values for name, values in points.items() if name not in levels}
    default = points.get(analysis.key(plain(DEFAULT_LEVEL, space)))
    titles: dict[str, list[str]] = {}
    if searched:
        for criterion in criteria:
            titles.setdefault(analysis.best(searched, criterion), []).append(criterion.metric)
        if len(criteria) > 1 and default is not None:
            titles.setdefault(analysis.balanced(searched, criteria, default), []).append(BALANCED)
    return [Candidate(tuple(own), known[name]) for name, own in titles.items()]


# --- output


def show_counter(trials: Sequence[tuple[trimtab.Params, Mapping[str, float]]]) -> None:
    """Print how cache misses and instructions were counted."""
    kinds = {values[SIMULATED] for _, values in trials if SIMULATED in values}
    if kinds == {1.0}:
        screen.print("Cache misses and instructions: simulated by valgrind --tool=cachegrind (first level)")
    elif kinds == {0.0}:
        screen.print("Cache misses and instructions: the processor's own counters, by perf")
    elif kinds:
        screen.print("Cache misses and instructions: some agents counted, others simulated; do not compare them")


def show_pareto(
    search: Study,
    points: Mapping[str, Mapping[str, float]],
    known: Mapping[str, trimtab.Params],
    criteria: Sequence[Criterion],
) -> None:
    """Print the Pareto set and its flags."""
    front = analysis.pareto(points, criteria)
    front.sort(key=lambda name: criteria[0].cost(points[name][criteria[0].metric]))
    states = [trial.state for trial in search.trials()]
    counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in dict.fromkeys(states))
    title = f"Pareto set: {len(front)} of {len(points)} configurations ({counts})"
    table = Table(*(criterion.metric for criterion in criteria), "flags", box=box.SIMPLE_HEAD, title=title)
    for name in front:
        row = [number(points[name][criterion.metric]) for criterion in criteria]
        table.add_row(*row, settings(known[name]))
    screen.print(table)


def show_measured(by_title: Mapping[str, Sequence[Values]], criteria: Sequence[Criterion]) -> None:
    """Print the medians of the final check."""
    table = Table(
        "best of", *(f"{criterion.metric}" for criterion in criteria), box=box.SIMPLE_HEAD, title="Final check, medians"
    )
    for title, values in by_title.items():
        cells = [number(middle(values)[criterion.metric]) if any(values) else "failed" for criterion in criteria]
        table.add_row(f"-{title}" if title in LEVELS else title, *cells)
    screen.print(table)


def show_gains(
    by_title: Mapping[str, Sequence[Values]],
    candidates: Sequence[Candidate],
    criteria: Sequence[Criterion],
) -> None:
    """Print the gain of the best configuration of each criterion."""
    table = Table("criterion", "configuration", "against -O2 (95 %)", "best level", "against it (95 %)", "flags",
                  box=box.SIMPLE_HEAD, title="Gains")  # fmt: skip
    medians = {level: middle(by_title[level]) for level in LEVELS if any(by_title[level])}
    for criterion in criteria:
        for candidate in candidates:
            if criterion.metric not in candidate.titles and BALANCED not in candidate.titles:
                continue
            own = by_title[", ".join(candidate.titles)]
            own_name = "its best" if criterion.metric in candidate.titles else BALANCED
            best = analysis.best(medians, criterion) if medians else DEFAULT_LEVEL
            cells = []
            for level in (DEFAULT_LEVEL, best):
                rounds = pairs(own, by_title[level], criterion)
                cells.append(gain_text(analysis.gain_of(rounds, criterion)) if rounds else "not measured")
            table.add_row(criterion.metric, own_name, cells[0], f"-{best}", cells[1], settings(candidate.params))
    screen.print(table)
    screen.print("A gain above 0 is better. * marks gains beyond noise: their whole interval is above 0.")


def middle(values: Sequence[Values]) -> Mapping[str, float]:
    """Return the medians over the completed trials of one configuration."""
    [found] = analysis.medians([({}, one) for one in values if one]).values()
    return found


def pairs(own: Sequence[Values], other: Sequence[Values], criterion: Criterion) -> list[tuple[float, float]]:
    """Return the values of both, round by round, without rounds in which one of the two failed."""
    return [(a[criterion.metric], b[criterion.metric]) for a, b in zip(own, other, strict=False) if a and b]


def show_effects(
    points: Mapping[str, Mapping[str, float]],
    known: Mapping[str, trimtab.Params],
    criteria: Sequence[Criterion],
    space: Sequence[trimtab.Parameter],
) -> None:
    """Print which flags matter for which criterion."""
    defaults = {parameter.name: default_of(parameter) for parameter in space}
    # at -O0 most flags do nothing
    used = {name: values for name, values in points.items() if known[name][LEVEL] != "O0"}
    table = Table("criterion", "setting", "change (95 %)", "", box=box.SIMPLE_HEAD, title="Which flags matter")
    for criterion in criteria:
        data = [(known[name], values[criterion.metric]) for name, values in used.items()]
        found, looked_at = analysis.effects(data, LEVEL, defaults)
        for one in found:
            change = f"{100 * one.change:+.1f} % ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
            setting = flag_text(one.parameter, one.value)
            table.add_row(criterion.metric, setting, change, "" if one.shown else "not shown: may be chance")
        shown = sum(one.shown for one in found)
        rest = f"{looked_at - shown} other settings: no change shown in {len(data)} configurations"
        table.add_row(criterion.metric, rest if shown else f"none of {looked_at}", "", "" if shown else "weak evidence")
    screen.print(table)
    screen.print(
        "Changes of the metric itself, while the level and the other listed settings stay the same. Only settings that"
        " stand out are listed, so the estimates are rather too large. Settings that fewer than"
        f" {analysis.LEAST_GROUP} configurations have, or have not, were not examined.",
        soft_wrap=True,
    )


def gain_text(gain: analysis.Gain) -> str:
    """Return a gain with its interval as text, with a * if it is beyond noise."""
    if gain.low is None or gain.high is None:
        return f"{100 * gain.estimate:+.1f} % (too few rounds)"
    text = f"{100 * gain.estimate:+.1f} % ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
    return f"{text} *" if gain.proven else text


def settings(params: Mapping[str, object]) -> str:
    """Return a configuration as text: its level and its other settings."""
    words = [f"-{params[LEVEL]}"]
    words += [flag_text(name, value) for name, value in params.items() if name != LEVEL and is_set(name, value)]
    return " ".join(words)


def is_set(name: str, value: object) -> bool:
    """Return whether a value changes anything at its level."""
    return value != OF_LEVEL and value is not (name == "pie")


def flag_text(name: str, value: object) -> str:
    """Return a setting as text, similar to a flag of GCC."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.removeprefix("no-") == name:
        return f"-f{text}"
    return {"true": name, "false": f"no {name}", "True": name, "False": f"no {name}"}.get(text, f"{name}={text}")


def number(value: float) -> str:
    """Return a number with four significant digits, and with all digits from 1,000 on."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


if __name__ == "__main__":
    sys.exit(main())
