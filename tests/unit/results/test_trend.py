from __future__ import annotations

import pytest

from service.planning.create import create_study
from service.results.trend import trend
from service.studies import selectors
from service.tenancy.principal import Principal
from tests.factories.domain import SECONDS, ask, make_spec, study_name, tell


@pytest.mark.parametrize(("goal", "expected"), [("minimize", [5.0, 3.0, 1.0]), ("maximize", [5.0, 5.0, 9.0])])
def test_the_trend_is_the_best_value_so_far(principal: Principal, goal: str, expected: list[float]) -> None:
    name = create_study(principal, study_name(), make_spec(objectives=[{**SECONDS, "goal": goal}])).name
    assert trend(principal, selectors.get_study(principal, name)) == []
    values = (5.0, 3.0, 9.0, 1.0)[: 4 if goal == "minimize" else 3]
    for value in values:
        tell(principal, name, ask(principal, name)[0], value)
    found = trend(principal, selectors.get_study(principal, name))
    assert sorted(set(found), key=found.index) == list(dict.fromkeys(expected))
    assert len(found) == len(values)


def test_a_long_study_has_a_short_trend_and_several_objectives_have_none(principal: Principal) -> None:
    name = create_study(principal, study_name(), make_spec()).name
    for number, trial in enumerate(ask(principal, name, 60)):
        tell(principal, name, trial, 100.0 - number)
    found = trend(principal, selectors.get_study(principal, name))
    assert (len(found), found[-1]) == (24, 41.0)
    assert found == sorted(found, reverse=True)
    several = make_spec(objectives=[SECONDS, {"metric": "memory", "goal": "minimize"}])
    other = create_study(principal, study_name(), several).name
    assert trend(principal, selectors.get_study(principal, other)) == []
