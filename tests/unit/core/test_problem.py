import json

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
    ],
)
def test_from_json_names_the_field_at_fault(changes: dict[str, object], field: str) -> None:
    valid = {"space": SPACE.to_json(), "objectives": [{"metric": "seconds", "goal": "minimize"}]}
    Problem.from_json(valid)
    with pytest.raises(InvalidInput) as caught:
        Problem.from_json({**valid, **changes})
    assert caught.value.data["field"] == field
