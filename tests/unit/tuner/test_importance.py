"""The insight into parameters and objectives, for functions with known answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.problem import Objective, Problem
from service.core.sensitivity import Sensitivity, Share
from service.core.space import BoolParameter, CategoricalParameter, Configuration, FloatParameter, IntParameter, Space
from service.core.trial import TrialRecord
from service.tuner.importance import FEWEST, FOREST, PROCESS, Insight, ObjectiveInsight, Process, insights

SPACE = Space.build(
    [
        FloatParameter("x", 0.0, 1.0, default=0.5),
        FloatParameter("rate", 1.0, 1000.0, log=True),
        IntParameter("idle", 1, 100),
        BoolParameter("flag", default=False),
        CategoricalParameter("mode", ("a", "b", "c"), default="a"),
    ]
)
ONE = Problem.build(SPACE, [Objective("seconds", "minimize", "s")])


def measured(function: Callable[[Configuration], dict[str, float]], count: int) -> list[TrialRecord]:
    rng = np.random.default_rng(3)
    trials = []
    for number in range(1, count + 1):
        configuration: Configuration = {
            "x": float(rng.random()),
            "rate": float(10 ** rng.uniform(0, 3)),
            "idle": int(rng.integers(1, 101)),
            "flag": bool(rng.integers(2)),
            "mode": str(rng.choice(["a", "b", "c"])),
        }
        trials.append(TrialRecord(number, configuration, TrialState.COMPLETED, function(configuration)))
    return trials


def insight(problem: Problem, trials: Sequence[TrialRecord], process: Process | None = None) -> Insight:
    """Return the whole insight."""
    *_, whole = insights(problem, trials, process=lambda: process or Process())
    return whole


def seconds(configuration: Configuration) -> dict[str, float]:
    """Half of the variance from x, the rest from the flag: 3 (x is uniform) and 3 (a fair coin of height 2 sqrt 3)."""
    return {"seconds": 10 + 6 * float(configuration["x"]) + 2 * np.sqrt(3) * bool(configuration["flag"])}


@pytest.fixture(scope="module")
def found() -> ObjectiveInsight:
    (objective,) = insight(ONE, measured(seconds, 400)).objectives
    return objective


def test_penalties_explain_nothing() -> None:
    """The size of a penalty is no effect: what the other values say about the parameters stays."""

    def penalised(configuration: Configuration) -> dict[str, float]:
        return {"seconds": 1e9} if float(configuration["rate"]) > 700 else seconds(configuration)

    (objective,) = insight(ONE, measured(penalised, 400)).objectives
    by_name = {effect.parameter: effect for effect in objective.effects}
    assert by_name["x"].importance + by_name["flag"].importance > 0.7
    assert max(by_name["x"].average.mean) < 20


def test_importance_is_the_share_of_the_variance(found: ObjectiveInsight) -> None:
    by_name = {effect.parameter: effect for effect in found.effects}
    assert {effect.parameter for effect in found.effects[:2]} == {"x", "flag"}
    assert by_name["x"].importance == pytest.approx(0.5, abs=0.06)
    assert by_name["flag"].importance == pytest.approx(0.5, abs=0.06)
    assert all(by_name[name].importance < 0.02 for name in ("rate", "idle", "mode"))
    assert found.explained > 0.95
    assert (found.configurations, found.model) == (400, "forest")


def test_the_share_of_a_parameter_is_at_most_one() -> None:
    """Its ends, where much of the variance lies, are no more of it than their width."""
    space = Space.build([FloatParameter("x", 0.0, 1.0), IntParameter("n", 1, 16)])
    rng = np.random.default_rng(0)
    trials = []
    for number in range(1, 61):
        x, n = float(rng.random()), int(rng.integers(1, 17))
        trials.append(TrialRecord(number, {"x": x, "n": n}, TrialState.COMPLETED, {"seconds": (x - 0.3) ** 2}))
    (bowl,) = insight(Problem.build(space, [Objective("seconds", "minimize")]), trials).objectives
    assert [effect.parameter for effect in bowl.effects] == ["x", "n"]
    assert 0.95 < bowl.effects[0].importance < sum(effect.importance for effect in bowl.effects) <= 1.0


def test_effects_are_given_at_levels_in_the_objectives_unit(found: ObjectiveInsight) -> None:
    by_name = {effect.parameter: effect for effect in found.effects}
    flag = by_name["flag"]
    assert flag.levels == [False, True]
    assert flag.average.mean[1] - flag.average.mean[0] == pytest.approx(2 * np.sqrt(3), rel=0.06)
    assert flag.change.mean[0] == pytest.approx(0)
    assert flag.change.mean[1] == pytest.approx(flag.average.mean[1] - flag.average.mean[0])
    assert flag.change.deviation[1] < 0.5
    assert by_name["mode"].levels == ["a", "b", "c"]
    x = by_name["x"]
    assert x.average.mean[-1] - x.average.mean[0] == pytest.approx(6, rel=0.15)
    # Through the best configuration: without the flag, so that x = 0 is the minimum.
    assert x.slice.mean[0] == pytest.approx(10, abs=0.5)
    assert by_name["rate"].levels[0] == 1.0
    assert by_name["rate"].levels[16] == pytest.approx(10**1.5)


def test_the_share_of_a_pair_excludes_its_parameters() -> None:
    def both(configuration: Configuration) -> dict[str, float]:
        """6 x where there is the flag. Variances: 0.75 from x alone, 2.25 from the flag alone, 3.75 in all."""
        return {"seconds": 6 * float(configuration["x"]) * bool(configuration["flag"])}

    (objective,) = insight(ONE, measured(both, 300)).objectives
    surfaces = {frozenset((one.first, one.second)): one for one in objective.surfaces}
    pair = surfaces.pop(frozenset(("x", "flag")))
    assert pair.importance == pytest.approx(0.2, abs=0.06)
    assert all(other.importance < 0.05 for other in surfaces.values())
    levels = len(pair.first_levels), len(pair.second_levels)
    assert np.shape(pair.mean) == levels


def test_slices_are_the_posteriors_where_there_is_one() -> None:
    asked: list[int] = []

    def predict(configurations: Sequence[Configuration]) -> Prediction:
        asked.append(len(configurations))
        # Times the sign: of what is maximised, an algorithm sees the negative.
        mean = np.array([-100.0 * float(one["x"]) for one in configurations])
        return Prediction(mean, np.full(len(mean), 0.25), 0.1)

    problem = Problem.build(SPACE, [Objective("speed", "maximize")])
    trials = measured(lambda one: {"speed": seconds(one)["seconds"]}, 60)
    (objective,) = insight(problem, trials, Process(predict=predict)).objectives
    x = next(effect for effect in objective.effects if effect.parameter == "x")
    assert objective.model == "gp"
    assert (x.slice.mean[0], x.slice.mean[-1], x.slice.deviation[0]) == (0.0, 100.0, 0.25)
    assert len(asked) == len(SPACE.parameters) + len(objective.surfaces)


def test_an_insight_comes_in_parts_with_the_process_last() -> None:
    asked: list[str] = []
    share = Share(0.4, 0.3, 0.5)

    def process() -> Process:
        asked.append("process")
        return Process({"seconds": {"x": Sensitivity(share, share)}})

    parts = insights(ONE, measured(seconds, 60), process=process)
    relations = next(parts)
    assert (relations.objectives, relations.missing) == ([], (FOREST, PROCESS))
    [[itself]] = relations.correlations
    assert itself == pytest.approx(1.0)
    forest = next(parts)
    assert (forest.missing, forest.correlations) == ((PROCESS,), relations.correlations)
    assert {one.sensitivity for one in forest.objectives[0].effects} == {None}
    assert asked == []
    (whole,) = parts
    assert (whole.missing, whole.correlations, asked) == ((), relations.correlations, ["process"])
    known = {one.parameter: one.sensitivity for one in whole.objectives[0].effects}
    assert known["x"] == Sensitivity(share, share)
    assert known["flag"] is None
    assert [one.average for one in whole.objectives[0].effects] == [one.average for one in forest.objectives[0].effects]


def test_few_or_equal_results_say_nothing() -> None:
    assert insight(ONE, []).objectives == []
    assert insight(ONE, measured(seconds, FEWEST - 1)).objectives == []
    assert insight(ONE, measured(lambda _: {"seconds": 1.0}, 50)).objectives == []


def test_linear_dependence_of_objectives_is_reported_with_its_coefficients() -> None:
    problem = Problem.build(SPACE, [Objective(name, "minimize") for name in ("time", "size", "energy", "constant")])

    def several(configuration: Configuration) -> dict[str, float]:
        time, size = seconds(configuration)["seconds"], float(configuration["idle"])
        return {"time": time, "size": size, "energy": 3 * time - 0.5 * size + 7, "constant": 4.0}

    found = insight(problem, measured(several, 60))
    energy = next(one for one in found.dependences if one.metric == "energy")
    assert energy.coefficients == pytest.approx({"time": 3.0, "size": -0.5})
    assert energy.constant == pytest.approx(7.0)
    assert found.correlations[0][0] == pytest.approx(1.0)
    assert found.correlations[0][3] is None
    assert abs(found.correlations[0][1] or 0.0) < 0.3
    assert [one.metric for one in found.objectives] == ["time", "size", "energy"]


def test_independent_objectives_do_not_depend() -> None:
    problem = Problem.build(SPACE, [Objective("a", "minimize"), Objective("b", "minimize")])
    trials = measured(lambda one: {"a": float(one["x"]), "b": float(one["idle"])}, 40)
    assert insight(problem, trials).dependences == []
