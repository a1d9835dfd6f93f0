import json
import math

import pytest

from service.core.errors import InvalidInput
from service.core.problem import Objective, Problem
from service.core.space import BoolParameter, IntParameter, Space

SPACE = Space.build([IntParameter("n", 1, 4), BoolParameter("huge")], ["n <= 3 or huge"])


def test_signs_make_smaller_better() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "minimize"), Objective("rate", "maximize")])
    assert problem.signs().tolist() == [1.0, -1.0]
    assert problem.metrics == ("seconds", "rate")


def test_json_round_trip() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "minimize", "s"), Objective("rate", "maximize")], noisy=False)
    assert Problem.from_json(json.loads(json.dumps(problem.to_json()))) == problem
    assert Problem.from_json({"space": SPACE.to_json(), "objectives": [{"metric": "x", "goal": "minimize"}]}).noisy


def test_outcome_constraints_judge_metrics() -> None:
    problem = Problem.build(
        SPACE,
        [Objective("seconds", "minimize")],
        outcome_constraints=["memory_mb <= 4096", "`error/rate` < 0.01 * seconds"],
    )
    assert Problem.from_json(json.loads(json.dumps(problem.to_json()))) == problem
    good = {"seconds": 10.0, "memory_mb": 4096.0, "error/rate": 0.05}
    assert problem.acceptable(good)
    assert not problem.acceptable({**good, "memory_mb": 4097.0})
    assert not problem.acceptable({**good, "error/rate": 0.1})
    # What was not measured is not known to be acceptable.
    assert not problem.acceptable({**good, "memory_mb": math.nan})
    assert not problem.acceptable({"seconds": 10.0})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"objectives": []}, "objectives"),
        ({"objectives": None}, "objectives"),
        ({"objectives": "seconds"}, "objectives"),
        ({"objectives": ["seconds"]}, "objectives[0]"),
        ({"objectives": [{"metric": "a", "goal": "minimise"}]}, "objectives[0].goal"),
        ({"objectives": [{"metric": "a", "goal": ["minimize"]}]}, "objectives[0].goal"),
        ({"objectives": [{"metric": "", "goal": "minimize"}]}, "objectives[0].metric"),
        ({"objectives": [{"metric": 3, "goal": "minimize"}]}, "objectives[0].metric"),
        ({"objectives": [{"metric": "a", "goal": "minimize", "unit": 3}]}, "objectives[0].unit"),
        ({"objectives": [{"metric": "a", "goal": "minimize", "weight": 3}]}, "objectives[0].weight"),
        ({"objectives": [{"metric": "a", "goal": "minimize"}] * 2}, "objectives[1].metric"),
        ({"objectives": [{"metric": f"a{index}", "goal": "minimize"} for index in range(20)]}, "objectives"),
        ({"space": [{"name": "x", "type": "int", "min": 3, "max": 1}]}, "space[0].min"),
        ({"space": None}, "space"),
        ({"noisy": 1}, "noisy"),
        ({"outcome_constraints": "memory_mb <= 4096"}, "outcome_constraints"),
        ({"outcome_constraints": ["m > 1"] * 9}, "outcome_constraints"),
        ({"outcome_constraints": ["memory_mb <= 4096", "memory_mb <="]}, "outcome_constraints[1]"),
        ({"outcome_constraints": [4096]}, "outcome_constraints[0]"),
        ({"outcome_constraints": ["memory_mb < 'little'"]}, "outcome_constraints[0]"),
        ({"outcome_constraints": ["n <= 3"]}, "outcome_constraints[0]"),
        ({"outcome_constraints": ["`memory in MB` <= 3"]}, "outcome_constraints[0]"),
    ],
)
def test_from_json_names_the_field_at_fault(changes: dict[str, object], field: str) -> None:
    valid = {"space": SPACE.to_json(), "objectives": [{"metric": "seconds", "goal": "minimize"}]}
    Problem.from_json(valid)
    with pytest.raises(InvalidInput) as caught:
        Problem.from_json({**valid, **changes})
    assert caught.value.data["field"] == field
