"""How many trials a component's model saves: replays on measured tables, with and without its best configuration first.

A wrong model, with the order of its predictions reversed, shows the cost of an error. The default is measured first.

Run as `python -m tests.benchmarks.predictions [--quick] [--json]`.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.replay.subject import Subject
from service.tuner.method import Method
from service.tuner.tuner import Tuner
from tests.agent.workloads.shared import module_of
from tests.benchmarks.intervals import bootstrap
from tests.benchmarks.table import Result, Row, main, result
from tests.benchmarks.tables import TABLES, Table

WORKLOADS = Path(__file__).parents[2] / "agents" / "workloads"
NAMES = ("sro-1", "sro-2", "sro-3", "hotspots", "sbb-2", "bcast-1024k")
# Nothing was chosen on these seeds.
FIRST_SEED, SEEDS, QUICK_SEEDS = 41000, 24, 1
TRIALS, NEAR = 40, 1.05


def run(quick: bool) -> Result:
    """Replay all tables that have a model."""
    rows = []
    for name in NAMES:
        table = TABLES[name]
        subject = table.subject()
        places = configurations(subject)
        default = default_of(table, places)
        order = [place for place in ranked(table, places) if place != default]
        first = [] if default is None else [default]
        starts = {"plain": first, "model": [*first, order[0]], "wrong model": [*first, order[-1]]}
        for label, start in starts.items():
            seeds = range(FIRST_SEED, FIRST_SEED + (QUICK_SEEDS if quick else SEEDS))
            found = bootstrap([float(trials(subject, places, start, seed, default is not None)) for seed in seeds])
            note = "mean trials until a configuration within 5 % of the optimum is measured"
            rows.append(
                Row(f"{name}: {label}", found.value, "", note=note, peers={"low": found.low, "high": found.high})
            )
    return result(rows)


def configurations(subject: Subject) -> dict[int, Configuration]:
    """Return the configurations of a table by their row."""
    every = subject.problem.space.enumerate(1 << 20) or ()
    return {row: one for one in every if (row := subject.row(one)) is not None}


def default_of(table: Table, places: dict[int, Configuration]) -> int | None:
    """Return the row of the scaled default; None if the table does not have it."""
    wanted = {name: str(value).lower() for name, value in (table.scaled or table.default).items()}
    for row, one in places.items():
        if all(str(one.get(name)).lower() == value for name, value in wanted.items()):
            return row
    return None


def ranked(table: Table, places: dict[int, Configuration]) -> list[int]:
    """Return the rows with a prediction, the best first."""
    predict = module_of(WORKLOADS / table.component, "model").predict
    context = {"component": table.component, "application": table.application}
    found = {row: predict({**table.fixed, **one}, context) for row, one in sorted(places.items())}
    return sorted((row for row, value in found.items() if value is not None), key=lambda row: found[row])


def trials(
    subject: Subject,
    places: dict[int, Configuration],
    start: Sequence[int],
    seed: int,
    default_first: bool,
    gap: int = 0,
) -> int:
    """Return the trials until one is near the optimum; one more than TRIALS if none is.

    `gap` is the number of suggestions between the first configuration of the start and the others.
    """
    tuner = Tuner(subject.problem, Method(algorithm="gp", seed=seed, budget=TRIALS))
    visits: Counter[int] = Counter()
    waiting, cursor = list(start), 0
    for number in range(1, TRIALS + 1):
        origin = "default" if number == 1 and default_first else "enqueued"
        if waiting and not 1 < number <= 1 + gap:
            configuration = places[waiting.pop(0)]
        else:
            answer = tuner.suggest(1, cursor=cursor)
            cursor, (item,) = answer.cursor, answer.items
            configuration, origin = item.configuration, item.origin
        row = subject.row(configuration)
        if row is None:
            tuner.update([TrialRecord(number, configuration, TrialState.INFEASIBLE, {}, number, None, origin)])
            continue
        measured = subject.measure(row, clock=0.0, seed=seed, visit=visits[row])
        visits[row] += 1
        metrics = dict(zip(subject.problem.metrics, map(float, measured.values), strict=True))
        tuner.update(
            [TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number, measured.seconds, origin)]
        )
        if float(subject.losses[row, 0]) <= NEAR * subject.optimum:
            return number
    return TRIALS + 1


if __name__ == "__main__":
    main("Trials that models save", run)
