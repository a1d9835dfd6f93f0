"""The verdict on a live study: how the gain of the settings in force is known."""

from __future__ import annotations

import math

import pytest

from service.results.analysis import Analysis, analyse, best_trials
from service.tenancy.principal import Principal
from service.tuner.verdict import Level
from tests.factories.fleet import study
from tests.factories.live import INCUMBENT, acquire_live, create_live, register_live, result, settle_live


@pytest.fixture(autouse=True)
def agent(principal: Principal) -> None:
    register_live(principal)


def found(principal: Principal, name: str) -> Analysis:
    return analyse(principal, study(principal, name))


def test_before_the_first_pair_nothing_is_known(principal: Principal) -> None:
    name = create_live(principal)
    assert found(principal, name).verdict is None


def test_without_a_kept_candidate_the_settings_of_the_start_are_in_force(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([0.1] * 8, "harm"))
    verdict = found(principal, name).verdict
    assert verdict is not None
    assert (verdict.level, verdict.configuration, verdict.gain) == (Level.NO_GAIN, INCUMBENT, 0.0)
    assert verdict.default == pytest.approx(math.exp(2.0))


def test_a_kept_candidate_is_proven_by_its_pairs(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([-0.1] * 8, "keep", kept=True))
    analysis = found(principal, name)
    verdict = analysis.verdict
    assert verdict is not None
    assert (verdict.level, verdict.code) == (Level.PROVEN, "better")
    assert verdict.text == "faster by 9.5 % (95 %: 4.9 to 13.9)"
    assert verdict.configuration == {**INCUMBENT, **grant.params}
    assert [one.code for one in verdict.conditions] == ["live_pairs", "live_in_force"]
    assert verdict.conditions[1] == "in force on one"
    assert verdict.value == pytest.approx(math.exp(2.0 - 0.1))
    assert [one.number for one in best_trials(principal, study(principal, name), analysis)] == [1]


def test_several_steps_are_provisional_together(principal: Principal) -> None:
    name = create_live(principal)
    settings = dict(INCUMBENT)
    for effect in (-0.1, -0.2):
        (grant,) = acquire_live(principal)
        settle_live(principal, grant, result([effect] * 8, "keep", kept=True, incumbent=dict(settings)))
        settings |= grant.params
    verdict = found(principal, name).verdict
    assert verdict is not None
    assert (verdict.level, verdict.text) == (Level.PROVISIONAL, "provisional: faster by 25.9 %")
    assert (verdict.low, verdict.high) == (None, None)
    assert [one.code for one in verdict.conditions] == ["live_pairs", "live_steps", "live_in_force"]
    # The next trial finds other settings: what was gained is over.
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([0.0] * 8))
    verdict = found(principal, name).verdict
    assert verdict is not None
    assert (verdict.level, verdict.configuration) == (Level.NO_GAIN, INCUMBENT)
