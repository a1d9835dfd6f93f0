"""Tune GCC's flags for Apache httpd on the agents of a Trimtab service, for any of several criteria.

One study for each algorithm searches; all of them run at the same time. Before its search, each measures -O0, -O1, -O2,
-O3, -Os and -Ofast, and random configurations, which show what each flag changes: the configurations of a search are
too similar to each other for that. In the end the best configuration of each criterion, the best on average of each
algorithm, and the six levels are measured in turns, round by round (the final check). The results are the Pareto set, a
table of the gains over -O2 and over the best level, with intervals, and which flags matter for which criterion.
`--figures` draws the configurations as in the published study.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import analysis
import figures
from analysis import Criterion
from measure import ALL, CONCURRENCY
from measure import PAGES as SINGLE_PAGES
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
PAGES = (*SINGLE_PAGES, ALL)
# metric: unit, and whether more is better
CRITERIA = {
    "requests_per_second": ("1/s", True),
    "ms_per_request": ("ms", False),
    "context_switches": ("per 1,000 requests", False),
    "httpd_context_switches": ("per 1,000 requests", False),
    "cpu_us_per_request": ("us", False),
    "cache_misses": ("per 1,000 requests", False),
    "instructions": ("per 1,000 requests", False),
    "binary_bytes": ("bytes", False),
    "build_seconds": ("s", False),
    "build_cpu_seconds": ("s", False),
}
# The criteria of [martinez-alvarez-2015, section 6].
PUBLISHED = ("requests_per_second", "ms_per_request", "context_switches", "cache_misses")
# Metrics that the application `all` also reports for each page.
BY_PAGE = (*PUBLISHED, "httpd_context_switches")
# Options of [martinez-alvarez-2015, sections 4 and 5], but its 32 individuals are divided into islands, of which it
# says neither the number nor the time between migrations.
ALGORITHM_OPTIONS: Mapping[str, Mapping[str, int | float | str]] = {
    "nsga2": {"coding": "binary", "mutation": 0.05, "population": 16, "islands": 2, "migration": 2},
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
  python agents/workloads/apache-gcc/tune.py --pages all --algorithms auto,nsga2 --trials 150 --figures fronts
  python agents/workloads/apache-gcc/tune.py --pages static-2k \\
      --criteria requests_per_second,context_switches,cache_misses,binary_bytes --algorithms auto --trials 60

The same command goes on where it was interrupted. The studies are called NAME-PAGES-ALGORITHM and NAME-PAGES-check.
"""

Values = Mapping[str, float] | None
"""The metrics of one trial of the final check. None: the trial failed."""


Trials = Sequence[tuple[trimtab.Params, Mapping[str, float]]]
"""The configurations and metrics of completed trials."""


@dataclass(frozen=True)
class Candidate:
    """A configuration of the final check. `titles` are the criteria, or means of them, of which it is the best."""

    titles: tuple[str, ...]
    params: trimtab.Params

    @property
    def title(self) -> str:
        """Return the titles as one text."""
        return ", ".join(self.titles)

    @property
    def balanced(self) -> bool:
        """Return whether it is the best on average."""
        return any(title.startswith(BALANCED) for title in self.titles)


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
        default=",".join(PUBLISHED),
        help=f"a list with commas, of {', '.join(CRITERIA)} (default: %(default)s)",
    )
    add("--trials", type=int, default=150, help="trials of each algorithm (default: %(default)s)")
    add("--repetitions", type=int, default=2, help="times each level is measured at first (default: %(default)s)")
    add("--screening", type=int, default=16, help="random configurations measured at first (default: %(default)s)")
    add("--rounds", type=int, default=8, help="rounds of the final check, 0: none (default: %(default)s)")
    options = "; ".join(f"{name}: {dict(given)}" for name, given in ALGORITHM_OPTIONS.items())
    add("--algorithms", default="auto,nsga2", help=f"a list with commas (default: %(default)s; options of {options})")
    add("--figures", type=Path, metavar="FOLDER", help="draw an SVG file for each page into this folder")
    add("--name", default="apache", help="how the studies' names begin (default: %(default)s)")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> None:
    """Search, run the final check, and print the results."""
    criteria = parse_criteria(options)
    with trimtab.Client() as client:
        component = client.component(COMPONENT)
        algorithms = check_algorithms(client, options, criteria)
        say_if_no_agent(client, "the study waits for one")
        space = component.space
        searches = {algorithm: open_search(client, options, criteria, space, algorithm) for algorithm in algorithms}
        for search in searches.values():
            follow(search, "Search", options.trials)
        trials = {algorithm: completed(search) for algorithm, search in searches.items()}
        measured = [trial for own in trials.values() for trial in own]
        if not measured:
            names = ", ".join(search.name for search in searches.values())
            raise trimtab.TrimtabError("nothing_measured", f"No trial of {names} is completed.")
        points = analysis.medians(measured)
        known = {analysis.key(params): params for params, _ in measured}
        show_counter(measured)
        show_consistency(measured)
        show_pareto(searches, trials, criteria)
        views = views_of(options.pages, criteria)
        show_single_runs(trials, views, space)
        if options.figures:
            levels = {analysis.key(plain(level, space)): f"-{level}" for level in LEVELS}
            by_algorithm = {
                algorithm: {name: points[name] for name in (analysis.key(params) for params, _ in own)}
                for algorithm, own in trials.items()
            }
            for page, own in views.items():
                if len(own) > 1:
                    screen.print(f"drawn: {figures.draw(options.figures, page, own, by_algorithm, levels)}")
        if options.rounds:
            check(client, options, space, criteria, trials, views)
        show_effects(points, known, criteria, space)


def views_of(pages: str, criteria: Sequence[Criterion]) -> dict[str, list[Criterion]]:
    """Return each page's criteria; those of the application `all` have the page's name in front."""
    if pages != ALL:
        return {pages: list(criteria)}
    return {
        page: [
            Criterion(f"{page.replace('-', '_')}_{one.metric}", one.maximize)
            for one in criteria
            if one.metric in BY_PAGE
        ]
        for page in SINGLE_PAGES
    }


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


def check_algorithms(client: trimtab.Client, options: argparse.Namespace, criteria: Sequence[Criterion]) -> list[str]:
    """Return the names of the algorithms. Raise InvalidInput for one that the service would refuse."""
    names = list(dict.fromkeys(options.algorithms.split(",")))
    for name in names:
        if not name:  # a study file may leave the name out
            raise InvalidInput.of("--algorithms", options.algorithms, "names of algorithms, with commas between them")
        described = {
            "component": COMPONENT,
            "objectives": [{"maximize" if one.maximize else "minimize": one.metric} for one in criteria],
            "algorithm": {"name": name, "options": dict(ALGORITHM_OPTIONS.get(name, {}))},
            "budget": {"max_trials": options.trials},
        }
        client.parse_study_file(json.dumps(described))
    return names


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
    algorithm: str,
) -> Study:
    """Return the study of an earlier run, or a new one that begins with the levels and the random configurations."""
    rounds = [[plain(level, space) for level in LEVELS] for _ in range(options.repetitions)]
    rounds.append(screening(options.screening, space))
    name = f"{options.name}-{options.pages}-{algorithm}"
    return open_study(client, name, options, criteria, space, rounds, options.trials, algorithm)


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
            algorithm_options=ALGORITHM_OPTIONS.get(algorithm, {}),
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


def completed(study: Study) -> Trials:
    """Return the configurations and metrics of the completed trials in the order of their numbers."""
    return [(trial.params, trial.metrics) for trial in study.trials(states=[trimtab.TrialState.COMPLETED])]


# --- the final check


def check(
    client: trimtab.Client,
    options: argparse.Namespace,
    space: Sequence[trimtab.Parameter],
    criteria: Sequence[Criterion],
    trials: Mapping[str, Trials],
    views: Mapping[str, Sequence[Criterion]],
) -> None:
    """Measure the candidates and the levels in turns, and print the gains."""
    candidates = choose(trials, criteria, space)
    levels = {level: plain(level, space) for level in LEVELS}
    compared = {**levels, **{one.title: one.params for one in candidates}}
    rounds = [list(compared.values())] * options.rounds
    total = options.rounds * len(compared)
    name = f"{options.name}-{options.pages}-check"
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
    if len(views) > 1:
        show_gains_by_page(by_title, candidates, views)


def choose(
    trials: Mapping[str, Trials],
    criteria: Sequence[Criterion],
    space: Sequence[trimtab.Parameter],
) -> list[Candidate]:
    """Return the best configuration of each criterion and each algorithm's best on average, without plain levels."""
    levels = {analysis.key(plain(level, space)) for level in LEVELS}
    everything = [trial for own in trials.values() for trial in own]
    known = {analysis.key(params): params for params, _ in everything}
    points = analysis.medians(everything)
    default = points.get(analysis.key(plain(DEFAULT_LEVEL, space)))
    searched = {name: values for name, values in points.items() if name not in levels}
    titles: dict[str, list[str]] = {}
    for criterion in criteria if searched else ():
        titles.setdefault(analysis.best(searched, criterion), []).append(criterion.metric)
    for algorithm, own in trials.items():
        found = {name: points[name] for name in map(analysis.key, (params for params, _ in own)) if name in searched}
        if found and len(criteria) > 1 and default is not None:
            best = analysis.balanced(found, criteria, default)
            titles.setdefault(best, []).append(f"{BALANCED} ({algorithm})")
    return [Candidate(tuple(own), known[name]) for name, own in titles.items()]


# --- output


def show_counter(trials: Trials) -> None:
    """Print how cache misses and instructions were counted."""
    kinds = {values[SIMULATED] for _, values in trials if SIMULATED in values}
    if kinds == {1.0}:
        screen.print("Cache misses and instructions: simulated by valgrind --tool=cachegrind (first level)")
    elif kinds == {0.0}:
        screen.print("Cache misses and instructions: the processor's own counters, by perf")
    elif kinds:
        screen.print("Cache misses and instructions: some agents counted, others simulated; do not compare them")


def show_consistency(trials: Trials) -> None:
    """Print whether throughput and the time of a request agree, which are measured independently."""
    products = [
        values["requests_per_second"] * values["ms_per_request"] / (1000 * CONCURRENCY)
        for _, values in trials
        if "ms_per_request" in values
    ]
    if products:
        middle = statistics.median(products)
        far = sum(abs(product / middle - 1) > analysis.INCONSISTENT for product in products)
        screen.print(
            f"Consistency: requests/s x seconds/request / {CONCURRENCY} clients is {middle:.3f} ({min(products):.3f} to"
            f" {max(products):.3f}) in {len(products)} trials; 1 would be perfect. {far} trials are more than"
            f" {100 * analysis.INCONSISTENT:g} % from the median.",
            soft_wrap=True,
        )


def show_pareto(
    searches: Mapping[str, Study],
    trials: Mapping[str, Trials],
    criteria: Sequence[Criterion],
) -> None:
    """Print the Pareto set of all searches with the algorithms that found its configurations."""
    everything = [trial for own in trials.values() for trial in own]
    points = analysis.medians(everything)
    known = {analysis.key(params): params for params, _ in everything}
    finders = {algorithm: {analysis.key(params) for params, _ in own} for algorithm, own in trials.items()}
    front = analysis.pareto(points, criteria)
    front.sort(key=lambda name: criteria[0].cost(points[name][criteria[0].metric]))
    for algorithm, search in searches.items():
        states = [trial.state for trial in search.trials()]
        counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in dict.fromkeys(states))
        screen.print(f"{algorithm}: {counts}; {len(finders[algorithm].intersection(front))} in the Pareto set")
    title = f"Pareto set: {len(front)} of {len(points)} configurations"
    table = Table(*(one.metric for one in criteria), "found by", "flags", box=box.SIMPLE_HEAD, title=title)
    for name in front:
        row = [number(points[name][criterion.metric]) for criterion in criteria]
        found_by = ", ".join(algorithm for algorithm, found in finders.items() if name in found)
        table.add_row(*row, found_by, settings(known[name]))
    screen.print(table)


def show_single_runs(
    trials: Mapping[str, Trials],
    views: Mapping[str, Sequence[Criterion]],
    space: Sequence[trimtab.Parameter],
) -> None:
    """Print the best single run of each criterion against the default, as table 1 of the published study."""
    default = analysis.key(plain(DEFAULT_LEVEL, space))
    table = Table(
        "criterion", *trials, box=box.SIMPLE_HEAD, title=f"Best single runs, against the median -{DEFAULT_LEVEL}"
    )
    for criterion in (one for own in views.values() for one in own):
        cells = []
        for own in trials.values():
            base = analysis.medians(own).get(default, {}).get(criterion.metric)
            values = [values[criterion.metric] for _, values in own if criterion.metric in values]
            best = min(values, key=criterion.cost, default=None)
            cells.append(f"{100 * criterion.gain(best, base):+.1f} %" if best is not None and base else "not measured")
        table.add_row(criterion.metric, *cells)
    screen.print(table)
    screen.print("The best of many noisy runs is better than its configuration: only the final check is proof.")


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
            if criterion.metric not in candidate.titles and not candidate.balanced:
                continue
            own = by_title[candidate.title]
            own_name = "its best" if criterion.metric in candidate.titles else candidate.title
            best = analysis.best(medians, criterion) if medians else DEFAULT_LEVEL
            cells = []
            for level in (DEFAULT_LEVEL, best):
                rounds = pairs(own, by_title[level], criterion)
                cells.append(gain_text(analysis.gain_of(rounds, criterion)) if rounds else "not measured")
            table.add_row(criterion.metric, own_name, cells[0], f"-{best}", cells[1], settings(candidate.params))
    screen.print(table)
    screen.print("A gain above 0 is better. * marks gains beyond noise: their whole interval is above 0.")


def show_gains_by_page(
    by_title: Mapping[str, Sequence[Values]],
    candidates: Sequence[Candidate],
    views: Mapping[str, Sequence[Criterion]],
) -> None:
    """Print the gains of the candidates for each page."""
    titles = [one.title for one in candidates]
    table = Table("criterion", *titles, box=box.SIMPLE_HEAD, title=f"Gains over -{DEFAULT_LEVEL} by page (95 %)")
    for criterion in (one for own in views.values() for one in own):
        rounds = [pairs(by_title[title], by_title[DEFAULT_LEVEL], criterion) for title in titles]
        cells = [gain_text(analysis.gain_of(one, criterion)) if one else "not measured" for one in rounds]
        table.add_row(criterion.metric, *cells)
    screen.print(table)


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
