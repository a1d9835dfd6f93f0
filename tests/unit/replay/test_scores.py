"""The metrics, against figures worked out by hand."""

import math

import numpy as np
import pytest

from service.core.problem import Objective, Problem
from service.core.space import OrdinalParameter, Space
from service.replay.interference import Quiet
from service.replay.replay_record import Contestant, Run
from service.replay.scores import best_so_far, measure, quantile, volumes
from service.replay.subject import Subject

RANDOM = Contestant("random", "none")


def subject(*truth: tuple[float, ...], default: float | None = None, goal: str = "minimize") -> Subject:
    values = np.array(truth, dtype=np.float64)
    objectives = [Objective.from_json({"metric": f"m{place}", "goal": goal}) for place in range(values.shape[1])]
    space = Space.build([OrdinalParameter("n", tuple(range(len(values))))])
    return Subject(
        name="small",
        problem=Problem.build(space, objectives),
        truth=values,
        answers=Quiet(values),
        default=None if default is None else np.array([default]),
    )


def run(one: Subject, rows: list[int], final: list[int], values: list[float] | None = None) -> Run:
    shown = (
        [[value] for value in values] if values else [[float(v) for v in one.truth[r]] if r >= 0 else [] for r in rows]
    )
    return Run(
        contestant=RANDOM,
        seed=0,
        rows=rows,
        values=shown,
        seconds=[None if row < 0 else value[0] for row, value in zip(rows, shown, strict=True)],
        recommended=[-1] * len(rows),
        final=final,
        reason="",
        computing=2.0,
    )


def test_metrics_of_a_search_without_noise() -> None:
    one = subject((20.0,), (10.4,), (10.0,), (40.0,), default=16.0)
    found = measure(one, run(one, [0, 3, 1, 0], [1]))
    # optimum 10; distances 100, 300, 4, 100 %
    assert found["S"] == 0
    assert found["5%Opt"] == 3
    assert found["DistOpt"] == pytest.approx(4)
    assert found["AvgDist"] == pytest.approx((100 + 300 + 4 + 100) / 4)
    # 40 after 20 is 20 worse, 20 after 10.4 is 9.6 worse: 29.6 in optima of 10
    assert found["EC"] == pytest.approx(2.96)
    assert found["ET"] == 0.5
    assert found["AvgDistOpt"] == pytest.approx(4)
    assert found["ImprovementDefault"] == pytest.approx(35)
    assert found["Convergence"] == 4
    assert found["Duration"] == pytest.approx(20 + 40 + 10.4 + 20)
    assert found["Triggers"] == 0
    assert found["Uniques"] == 3
    assert math.isnan(found["Hypervolume"])


def test_noise_is_seen_through() -> None:
    one = subject((20.0,), (10.0,), (11.0,))
    # the best run is a lucky one of the worst configuration, and believed
    found = measure(one, run(one, [0, 1, 1, 1, 0], [0], [9.0, 12.0, 11.0, 13.0, 21.0]))
    assert found["DistOpt"] == 0
    assert found["AvgDistOpt"] == pytest.approx(100)
    assert found["S"] == 0
    assert found["AvgDist"] == pytest.approx((-10 + 20 + 10 + 30 + 110) / 5)
    assert found["Triggers"] == 1
    assert found["Uniques"] == 2


def test_larger_is_better() -> None:
    one = subject((100.0,), (80.0,), (50.0,), default=50.0, goal="maximize")
    found = measure(one, run(one, [2, 1], [1]))
    assert found["DistOpt"] == pytest.approx(20)
    assert found["ImprovementDefault"] == pytest.approx(60)
    assert found["5%Opt"] == math.inf
    assert found["EC"] == 0


def test_infeasible_trials_count_as_trials_alone() -> None:
    one = subject((20.0,), (10.0,))
    found = measure(one, run(one, [-1, 1], [1]))
    assert (found["5%Opt"], found["DistOpt"], found["Convergence"], found["Uniques"]) == (2, 0, 2, 1)
    assert found["Duration"] == 10
    assert list(best_so_far(one, run(one, [-1, 1], [1]))) == [math.inf, 0]


def test_nothing_measured() -> None:
    one = subject((20.0,), (10.0,))
    found = measure(one, run(one, [-1], []))
    assert math.isnan(found["DistOpt"])
    assert found["Uniques"] == 0


def test_share_of_the_true_front() -> None:
    one = subject((0.0, 10.0), (10.0, 0.0), (5.0, 5.0), (9.0, 9.0))
    shares = volumes(one, run(one, [3, 0, 1, 2], []))
    # in units of the front's range, with 1.1 as reference
    whole = 1.1**2 - (0.5 * 1.0 + 0.5 * 0.5)
    assert shares[0] == pytest.approx(0.2 * 0.2 / whole)
    assert shares[-1] == pytest.approx(1)
    assert list(shares) == sorted(shares)
    assert measure(one, run(one, [3, 0, 1, 2], []))["Hypervolume"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0], 0.5, 1.5),
        ([1.0, 2.0, math.inf], 0.5, 2.0),
        ([1.0, math.inf, math.inf], 0.5, math.inf),
        ([math.nan, 5.0], 0.25, 5.0),
    ],
)
def test_quantile(values: list[float], share: float, expected: float) -> None:
    assert quantile(values, share) == expected


def test_quantile_of_nothing() -> None:
    assert math.isnan(quantile([math.nan], 0.5))
