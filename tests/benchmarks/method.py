"""How well the method tunes: replays on the grids of [robert-2021], on measured tables and on standard functions.

Four questions, each a part of the result: without noise, with noise, with several objectives, and how many trials are
needed. Every contestant has the same subjects, seeds and number of trials; distances are to the true optimum, per cent.

Run as `python -m tests.benchmarks.method [--quick]`; needs the dependency group `bench`. The full form takes a day on
two cores, most of it in the other libraries; its runs are kept in bench-results/method, and a run that was broken off
goes on. `--quick` has three seeds, a few subjects and no Ax: three minutes.
"""

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from service.core.errors import JsonValue
from service.core.problem import Problem
from service.replay import bench, measured_table, scores, simulators
from service.replay.interference import Quiet
from service.replay.replay_record import Contestant, Run
from service.replay.run import Terms
from service.replay.subject import Subject
from tests.benchmarks.table import Result, Row, main, result

FOLDER = Path("bench-results/method")
MEASURED = Path(__file__).parents[3] / "shared" / "data" / "openmpi_collectives.csv"
# Surfaces and defaults were looked at with seeds from 0 on: what is reported uses others.
FIRST_SEED = 1000
SEEDS, QUICK_SEEDS = 30, 3
# Suggestions of theirs take seconds.
SLOW = {"ax": 5, "optuna-gp": 10}
BUDGET, START = 100, 10

THESIS = ("sbb-1", "sbb-2", "sro-1", "sro-1-nfs", "sro-2", "sro-2-nfs", "sro-3", "sro-3-nfs")
FUNCTIONS = ("branin", "hartmann", "ackley", "rosenbrock", "levy", "rastrigin", "styblinski")
OURS = ("auto", "gp", "ga", "sa", "smbo", "tpe", "cmaes", "random")
PEERS = ("optuna-tpe", "optuna-gp", "ax")
TWO = ("zdt1", "zdt2", "zdt3", "dtlz2", "sbb-threads", "sro-loaded")

# Noisy subjects, with the trials after which the thesis' method had ended on average (table 5.17; a multiple of five,
# for recommendations are asked for after each five). Its distances are not compared: the surfaces are synthetic.
NOISY_THESIS = {
    ("sro-noisy", "bursts-60"): 100,
    ("sro-noisy", "bursts-120"): 80,
    ("sro-noisy", "bursts-300"): 75,
    ("sbb-noisy", None): 35,
}
NOISY_OTHERS = (
    ("sbb-1", "shared-cluster"),
    ("sro-1", "shared-cluster"),
    ("levy", "shared-cluster"),
    ("sbb-1", "lognormal"),
)
# [robert-2021, section 5.5]: the search ends when the best improves by less than 5 % in 15 trials.
STOP: JsonValue = {"rule": "best_improvement", "threshold": 0.05, "trials": 15}


@dataclass(frozen=True)
class Part:
    """Replays under the same terms."""

    name: str
    subjects: Sequence[Subject]
    contestants: Sequence[Contestant]
    budget: int = BUDGET
    seeds: int = SEEDS
    stop: bool = False


def _quiet(subject: Subject) -> Subject:
    """The subject without its noise."""
    problem = Problem.build(subject.problem.space, subject.problem.objectives, noisy=False)
    return replace(subject, name=f"{subject.name}-quiet", problem=problem, answers=Quiet(subject.truth))


def _measured(collective: str) -> list[Subject]:
    """A table that was really measured, where it is at hand."""
    if not MEASURED.exists():
        return []
    selection = measured_table.Selection(
        parameters=["algorithm", "segmentsize", "fanout"],
        categorical=["algorithm"],
        metrics=["median_us"],
        where={"collective": collective},
    )
    return [replace(measured_table.load(MEASURED, selection), name=collective)]


def _plain(names: Sequence[str]) -> list[Contestant]:
    return [Contestant(name, "none") for name in names]


def parts(quick: bool) -> list[Part]:
    """Return the parts of the replay."""
    seeds = QUICK_SEEDS if quick else SEEDS
    tables = [*_measured("bcast"), *_measured("reduce")]
    plain = ("sbb-1", "sro-2") if quick else (*THESIS, *FUNCTIONS)
    noisy = [("sbb-noisy", None), ("sro-noisy", "bursts-120")] if quick else [*NOISY_THESIS, *NOISY_OTHERS]
    ours = ("auto", "ga", "smbo", "random") if quick else OURS
    peers = ("optuna-tpe",) if quick else PEERS
    with_noise = [Contestant("auto", "adaptive"), Contestant("smbo", "thesis"), Contestant("smbo", "none")]
    if not quick:
        with_noise += [Contestant("auto", policy) for policy in ("none", "static", "sedr", "thesis")]
        with_noise += [Contestant("smbo", policy) for policy in ("static", "sedr")]
    two = ("zdt1", "sbb-threads") if quick else TWO
    subjects = [simulators.create(name) for name in two]
    return [
        Part(
            "noise-free",
            [*(simulators.create(name) for name in plain), *map(_quiet, [] if quick else tables)],
            _plain((*ours, *peers)),
            seeds=seeds,
        ),
        Part(
            "noisy",
            [*(simulators.create(name, noise) for name, noise in noisy), *([] if quick else tables)],
            [*with_noise, *_plain(("random", *peers))],
            seeds=seeds,
        ),
        Part(
            "noisy-stopped",
            [simulators.create(name, noise) for name, noise in noisy if (name, noise) in NOISY_THESIS],
            [Contestant("smbo", "thesis")],
            budget=160,
            seeds=seeds,
            stop=True,
        ),
        Part("two", subjects, _plain(("auto", "nsga2")), seeds=seeds),
        Part("two-long", subjects, _plain(("nsga2",)), budget=1000, seeds=seeds),
    ]


def _terms(part: Part) -> Terms:
    return Terms(budget=part.budget, start=START, stopping=STOP if part.stop else None)


def replay(part: Part, subject: Subject, folder: Path, progress: Progress) -> list[Run]:
    """The runs of one subject, made or found in the folder."""
    found: list[Run] = []
    for slow in {None, *(name for name in SLOW if name in [one.algorithm for one in part.contestants])}:
        seeds = min(part.seeds, SLOW.get(slow or "", part.seeds))
        plan = bench.Plan(
            subject=subject,
            terms=_terms(part),
            contestants=[one for one in part.contestants if (one.algorithm if one.algorithm in SLOW else None) == slow],
            seeds=range(FIRST_SEED, FIRST_SEED + seeds),
        )
        store = bench.Store.open(folder / part.name / subject.name, plan)
        task = progress.add_task(f"{part.name}, {subject.name}" + (f", {slow}" if slow else ""), total=len(plan))
        progress.update(task, completed=len(store.of(plan)))
        bench.make(plan, store, os.cpu_count() or 1, lambda _, task=task: progress.advance(task))  # type: ignore[misc]
        progress.remove_task(task)
        found += store.of(plan)
    return found


Found = Mapping[str, Mapping[str, list[Run]]]  # part -> subject -> runs


def run(quick: bool) -> Result:
    """Replays everything, and holds it against what was promised."""
    folder = FOLDER / ("quick" if quick else "full")
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    made = parts(quick)
    subjects = {part.name: {subject.name: subject for subject in part.subjects} for part in made}
    found: dict[str, dict[str, list[Run]]] = {}
    with Progress(*columns, console=console) as progress:
        for part in made:
            found[part.name] = {subject.name: replay(part, subject, folder, progress) for subject in part.subjects}
    measured = {
        part: {
            name: [{**scores.measure(subjects[part][name], one), "contestant": str(one.contestant)} for one in runs]
            for name, runs in by_subject.items()
        }
        for part, by_subject in found.items()
    }
    rows = [
        *_noise_free(subjects["noise-free"], found["noise-free"]),
        *_noisy(subjects["noisy"], found["noisy"], subjects["noisy-stopped"], found["noisy-stopped"]),
        *_two(subjects["two"], found["two"], found["two-long"]),
    ]
    return result(rows, metrics=measured)


def _by_contestant(runs: Sequence[Run], figure: Mapping[int, float]) -> dict[str, list[float]]:
    grouped: dict[str, list[float]] = {}
    for one in runs:
        grouped.setdefault(str(one.contestant), []).append(figure[id(one)])
    return grouped


def _figures(subject: Subject, runs: Sequence[Run], name: str) -> dict[str, list[float]]:
    """A metric of all runs, by contestant."""
    return _by_contestant(runs, {id(one): scores.measure(subject, one)[name] for one in runs})


def _medians(figures: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: scores.quantile(values, 0.5) for name, values in figures.items()}


def _noise_free(subjects: Mapping[str, Subject], found: Mapping[str, Sequence[Run]]) -> list[Row]:
    rows: list[Row] = []
    pooled: dict[str, list[float]] = {}
    near: list[float] = []
    always: set[str] | None = None
    note = f"median over the seeds of the distance after {BUDGET} trials, {START} of them at the start"
    for name, runs in found.items():
        figures = _figures(subjects[name], runs, "DistOpt")
        for contestant, values in figures.items():
            pooled.setdefault(contestant, []).extend(values)
        near += _figures(subjects[name], runs, "5%Opt")["auto"]
        chosen = _same_as(runs, "auto")
        always = chosen if always is None else always & chosen
        rows.append(_against(f"{name}: DistOpt", _medians(figures), chosen, note))
    means = {contestant: statistics.fmean(values) for contestant, values in pooled.items()}
    return [
        _against("all without noise: DistOpt, median", _medians(pooled), always or set(), note),
        Row("all without noise: DistOpt, mean", means.pop("auto"), "%", peers=means),
        Row("trials until within 5 %", scores.quantile(near, 0.5), "", note="median over all seeds without noise"),
        *rows,
    ]


def _same_as(runs: Sequence[Run], name: str) -> set[str]:
    """The contestants that searched exactly as this one: the algorithms that `auto` has chosen."""
    searches: dict[str, dict[int, Sequence[int]]] = {}
    for one in runs:
        searches.setdefault(str(one.contestant), {})[one.seed] = one.rows
    return {other for other, rows in searches.items() if other != name and rows == searches[name]}


def _against(name: str, medians: dict[str, float], chosen: set[str], note: str) -> Row:
    """Return the comparison of `auto` with all others. If several find the optimum, none can be below the others."""
    value = medians.pop("auto")
    others = [other for contestant, other in medians.items() if contestant not in chosen]
    reached = value <= 1 and all(value < other or value == other == 0 for other in others)
    return Row(name, value, "%", "at most 1 %, below the others", reached, medians, note)


def _recommended(subject: Subject, run: Run, trials: int) -> float:
    """The distance of what was recommended after so many trials, or at the end."""
    row = run.final[0] if run.final else -1
    if trials < len(run.rows):
        row = run.recommended[trials - 1]
    return 100 * float(subject.distances()[row]) if row >= 0 else math.nan


def _noisy(
    subjects: Mapping[str, Subject],
    found: Mapping[str, Sequence[Run]],
    stopped_subjects: Mapping[str, Subject],
    stopped: Mapping[str, Sequence[Run]],
) -> list[Row]:
    rows: list[Row] = []
    limits = {simulators.create(*key).name: limit for key, limit in NOISY_THESIS.items()}
    for name, runs in found.items():
        subject = subjects[name]
        trials = limits.get(name, BUDGET)
        figures = _by_contestant(runs, {id(one): _recommended(subject, one, trials) for one in runs})
        means = {contestant: scores.mean(values) for contestant, values in figures.items()}
        value = means.pop("auto + adaptive")
        rows.append(
            Row(
                f"{name}: AvgDistOpt after {trials} trials",
                value,
                "%",
                "below smbo + thesis",
                value < means["smbo + thesis"],
                means,
                "mean over the seeds of the true distance of what was recommended",
            )
        )
    for name, runs in stopped.items():
        subject = stopped_subjects[name]
        ended = scores.mean(_figures(subject, runs, "Convergence")["smbo + thesis"])
        distance = scores.mean(_figures(subject, runs, "AvgDistOpt")["smbo + thesis"])
        note = "the thesis' method as replayed here, with its stopping rule"
        rows.append(Row(f"{name}: its AvgDistOpt", distance, "%", note=note, peers={"trials": ended}))
    return rows


def _two(
    subjects: Mapping[str, Subject], found: Mapping[str, Sequence[Run]], long: Mapping[str, Sequence[Run]]
) -> list[Row]:
    rows = []
    for name, runs in found.items():
        medians = _medians(_figures(subjects[name], runs, "Hypervolume"))
        after = _medians(_figures(subjects[name], long[name], "Hypervolume"))["nsga2"]
        rows.append(
            Row(
                f"{name}: hypervolume after {BUDGET} trials",
                medians["auto"],
                "",
                "above nsga2 after 1,000",
                medians["auto"] > after or medians["auto"] == after == 1,
                {"nsga2": medians["nsga2"], "nsga2 after 1,000": after},
                "median over the seeds of the share of the true front's hypervolume",
            )
        )
    return rows


if __name__ == "__main__":
    main("Quality of the method", run)
