"""The final check of a study with several objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from service.core.errors import Conflict, InvalidInput
from service.core.lifecycle import TrialState
from service.planning.create import extend_budget, update_state
from service.planning.space_changes import change_space
from service.results.analysis import analyse
from service.studies import actions
from service.studies.change import changing
from service.studies.models import Operation, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tuners
from service.trials.continuing import check_study
from service.trials.models import DesignerState
from service.trials.tell import add_trial, complete_trial, fail_trial, finish
from service.tuner.verdict import ParetoVerdict
from tests.factories.domain import make_execution
from tests.unit.trials.policies.calls import ask, create, get, with_default, work

TWO = [{"metric": "seconds", "goal": "minimize"}, {"metric": "rate", "goal": "maximize"}]


def values_of(trial: Trial) -> dict[str, float]:
    """Without noise. The default has 14 s and a rate of 106. A larger n is better; x is a trade-off."""
    x, n = float(trial.params["x"]), float(trial.params["n"])
    return {"seconds": 20 - 10 * x - n / 4, "rate": 100 - 20 * x + 4 * n}


def several(principal: Principal, **changes: Any) -> str:
    spec = with_default(objectives=TWO, budget={"max_trials": 12}, **changes)
    return create(principal, spec)


def measure(principal: Principal, name: str, values: Callable[[Trial], Mapping[str, float]] = values_of) -> list[Trial]:
    """Measure a study until it is not ACTIVE, and return its new trials."""
    trials: list[Trial] = []
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        trials.append(trial)
        complete_trial(principal, name, trial.number, metrics=values(trial))
    return trials


def verdict_of(principal: Principal, name: str) -> ParetoVerdict:
    analysis = analyse(principal, get(principal, name))
    assert analysis.pareto_verdict is not None
    assert analysis.verdict is None
    return analysis.pareto_verdict


@pytest.mark.parametrize("algorithm", ["random", "nsga2"])
def test_members_of_the_pareto_set_are_compared_with_the_default(principal: Principal, algorithm: str) -> None:
    name = several(principal, algorithm={"name": algorithm}, final_check={})
    trials = measure(principal, name)
    checks = trials[12:]
    assert {trial.origin for trial in checks} == {"check"}
    assert "check" not in {trial.origin for trial in trials[:12]}
    study = get(principal, name)
    assert (study.state, study.state_reason) == ("COMPLETED", "All 12 trials of the budget are done.")
    verdict = verdict_of(principal, name)
    assert (verdict.level, verdict.trials, verdict.measured) == ("proven", len(checks), len(trials))
    assert verdict.text.startswith("better in every objective: hypervolume ")
    assert verdict.gain == verdict.low == verdict.high, "there is no noise"
    default = {"seconds": 14.0, "rate": 106.0}
    assert 2 <= len(verdict.members) <= 3
    for member in verdict.members:
        expected = values_of(Trial(params=dict(member.params)))
        assert member.runs == 5
        for one, sign in zip(member.objectives, (1, -1), strict=True):
            assert (one.default, one.value) == pytest.approx((default[one.metric], expected[one.metric]))
            assert one.gain == pytest.approx(sign * (default[one.metric] - expected[one.metric]) / default[one.metric])
    analysis = analyse(principal, study)
    leading = max(verdict.members, key=lambda one: min(gain.gain or 0.0 for gain in one.objectives))
    assert analysis.configuration == leading.params, "all numbers belong to one configuration"
    for progress, own in zip(analysis.objectives, leading.objectives, strict=True):
        assert (progress.default, progress.best, progress.gain) == (own.default, own.value, own.gain)
        assert (progress.gain_low, progress.gain_high) == (own.low, own.high)
    # Without noise, every configuration has as many runs as its round, and the default as well.
    key = [(trial.params["x"], trial.params["n"]) for trial in checks]
    assert {key.count(one) for one in key} == {5}


def test_a_completed_study_is_given_a_check_later(principal: Principal) -> None:
    name = several(principal)
    measure(principal, name)
    assert analyse(principal, get(principal, name)).pareto_verdict is None
    with pytest.raises(InvalidInput) as refused:
        check_study(principal, name, {"max_trials": 9})
    assert refused.value.data["field"] == "final_check.max_trials"
    with pytest.raises(InvalidInput) as refused:
        check_study(principal, name, {"effects": 16})
    assert refused.value.data["field"] == "final_check.effects"
    assert check_study(principal, name, {"max_trials": 10}, request_id="once").state == "ACTIVE"
    assert len(measure(principal, name)) == 10
    first = verdict_of(principal, name)
    assert len(first.members) == 1
    assert check_study(principal, name, {"max_trials": 10}, request_id="once").state == "COMPLETED"
    check_study(principal, name)
    assert verdict_of(principal, name).text == first.text, "until the next one is over"
    assert len(measure(principal, name)) == 20
    assert len(verdict_of(principal, name).members) == 3
    assert get(principal, name).earlier_checks == 10


def test_more_budget_and_another_space_keep_the_verdict_of_the_members_inside(principal: Principal) -> None:
    name = several(principal, final_check={})
    measure(principal, name)
    before = verdict_of(principal, name)
    extend_budget(principal, name, {"max_trials": 14})
    assert verdict_of(principal, name) == before
    lost = max(float(one.params["x"]) for one in before.members)
    change_space(principal, name, {"x": {"max": lost - 1e-6}}, check_space=lambda *_: None)
    after = verdict_of(principal, name)
    assert after.members == tuple(one for one in before.members if float(one.params["x"]) < lost)
    assert after.gain is not None
    assert before.gain is not None
    assert after.gain < before.gain
    change_space(principal, name, {"x": {"max": 0.5}, "n": {"min": 4, "max": 4}}, check_space=lambda *_: None)
    assert analyse(principal, get(principal, name)).pareto_verdict is None, "no member is left"
    measure(principal, name)
    assert verdict_of(principal, name).trials > 0, "a new check follows"


def test_the_default_alone_needs_no_check(principal: Principal) -> None:
    name = several(principal, final_check={})
    trials = measure(
        principal,
        name,
        lambda trial: {"seconds": 1.0, "rate": 9.0} if trial.origin == "default" else {"seconds": 2.0, "rate": 8.0},
    )
    assert len(trials) == 12
    verdict = verdict_of(principal, name)
    assert (verdict.level, verdict.gain, verdict.trials, verdict.members) == ("no measurable gain", 0.0, 0, ())
    assert verdict.text == "no measurable gain: the default is the best in every objective"


def test_a_search_that_measured_nothing_has_nothing_to_check(principal: Principal) -> None:
    name = create(principal, with_default(objectives=TWO, budget={"max_trials": 1}, final_check={}))
    (trial,) = ask(principal, name)
    fail_trial(principal, name, trial.number, infeasible=True)
    after = get(principal, name)
    assert (after.state, after.verdict) == ("COMPLETED", None)


def test_trade_offs_are_no_gain_in_every_objective(principal: Principal) -> None:
    name = several(principal, final_check={})

    def traded(trial: Trial) -> dict[str, float]:
        x = float(trial.params["x"])
        return {"seconds": 10.0 + x, "rate": 10.0 + x}

    measure(principal, name, traded)
    verdict = verdict_of(principal, name)
    assert (verdict.level, verdict.gain, verdict.high) == ("no measurable gain", 0.0, 0.0)
    assert len(verdict.members) == 2, "the best in each objective"
    assert all(sorted((one.low or 0.0) > 0 for one in member.objectives) == [False, True] for member in verdict.members)


def search(principal: Principal, name: str, values: Callable[[Trial], Mapping[str, float]] = values_of) -> None:
    for _ in range(12):
        (trial,) = ask(principal, name)
        complete_trial(principal, name, trial.number, metrics=values(trial))


def test_a_member_that_keeps_failing_does_not_stall_the_check(principal: Principal) -> None:
    name = several(principal, final_check={})
    search(principal, name)
    check = get(principal, name).final_check
    assert check is not None
    broken = check["best"][0]
    checks = []
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        checks.append(trial)
        # A process that was killed has forgotten its tuners.
        tuners._learners.clear()
        if trial.params == broken:
            fail_trial(principal, name, trial.number, infeasible=len(checks) % 2 == 0)
        else:
            complete_trial(principal, name, trial.number, metrics=values_of(trial))
    assert sum(trial.params == broken for trial in checks) == 2
    verdict = verdict_of(principal, name)
    unknown, *others = verdict.members
    assert (unknown.params, unknown.runs, unknown.objectives[0].gain) == (broken, 0, None)
    assert all(one.runs >= 5 for one in others)
    assert verdict.level == "proven"


def test_trials_that_all_fail_leave_the_gain_unknown(principal: Principal) -> None:
    name = several(principal, final_check={})
    search(principal, name)
    checks = ask(principal, name, 30)
    assert len(checks) == 20
    with pytest.raises(Conflict):
        ask(principal, name)
    # The results come in any order.
    for trial in reversed(checks):
        fail_trial(principal, name, trial.number, infeasible=False)
    verdict = verdict_of(principal, name)
    assert (verdict.level, verdict.gain, verdict.low, verdict.trials) == ("not yet known", None, None, 20)
    assert verdict.text == "not yet known: too few trials of the final check worked"


def test_results_in_any_order_give_the_same_verdict(principal: Principal) -> None:
    name = several(principal, final_check={})
    search(principal, name)
    checks = ask(principal, name, 20)
    for trial in sorted(checks, key=lambda trial: trial.number * 7 % 20):
        complete_trial(principal, name, trial.number, metrics=values_of(trial))
    verdict = verdict_of(principal, name)
    assert [one.runs for one in verdict.members] == [5, 5, 5]
    assert verdict.level == "proven"


@pytest.mark.usefixtures("predicting")
@pytest.mark.parametrize("later", [False, True])
def test_the_posterior_of_a_costly_algorithm_decides_on_the_pareto_set(principal: Principal, later: bool) -> None:
    name = several(principal, algorithm={"name": "gp"}, resampling={"name": "none"}, final_check=None if later else {})

    def values(trial: Trial) -> dict[str, float]:
        return {"seconds": 10.0 + float(trial.params["n"]), "rate": 100.0 - float(trial.params["n"])}

    search(principal, name, values)
    if later:
        # The end of the search is computed while the check begins.
        check_study(principal, name)
    study = get(principal, name)
    assert study.final_check is not None
    assert study.final_check["best"] is None
    work(principal)
    assert not access.rows(Operation, principal).filter(state="PENDING").exists()
    study = get(principal, name)
    assert study.final_check is not None
    (member,) = study.final_check["best"]
    tried = access.rows(Trial, principal).filter(study_id=study.pk)
    assert float(member["x"]) == min(float(one.params["x"]) for one in tried), "the medians of many are equal"
    assert [one.params for one in analyse(principal, study).best] == [member]
    trials = measure(principal, name, values)
    assert [trial.origin for trial in trials] == ["check"] * 12
    assert verdict_of(principal, name).level == "proven"


@pytest.mark.usefixtures("predicting")
def test_results_after_the_posterior_count_by_their_medians(principal: Principal) -> None:
    name = several(principal, algorithm={"name": "gp"}, resampling={"name": "none"})
    # By the posterior, 0 and -x are the least and the best values.
    for _ in range(4):
        (trial,) = ask(principal, name)
        complete_trial(principal, name, trial.number, metrics={"seconds": 9.0, "rate": 1.0})
    add_trial(principal, name, params={"x": 0.9, "n": 2}, metrics={"seconds": 8.0, "rate": 2.0})
    best = [one.params["x"] for one in analyse(principal, get(principal, name)).best]
    assert 0.9 in best, "it leads in one objective"
    assert len(best) == 2
    ask(principal, name)
    assert 0.9 not in [one.params["x"] for one in analyse(principal, get(principal, name)).best]


def test_a_study_on_agents_is_checked_if_its_spec_asks_for_it(principal: Principal) -> None:
    execution = make_execution(parallelism=2)
    component = {"objectives": TWO, "execution": execution, "budget": {"max_trials": 6}}
    assert get(principal, create(principal, with_default(**component))).spec["final_check"] is None
    name = create(principal, with_default(**component, final_check={}))
    origins = []
    while get(principal, name).state == "ACTIVE":
        with changing(principal, name, "test") as change:
            trials = actions.waiting_trials(change, 1)
            assert trials, "an agent waits, and the study with it"
            actions.start_trials(change, trials, agent="agent")
            finish(change, trials[0], TrialState.COMPLETED, metrics=values_of(trials[0]))
            origins.append(trials[0].origin)
    assert origins[6:] == ["check"] * len(origins[6:])
    assert verdict_of(principal, name).trials == len(origins) - 6


def test_an_aborted_check_leaves_no_verdict(principal: Principal) -> None:
    name = several(principal, final_check={})
    search(principal, name)
    ask(principal, name)
    update_state(principal, name, "ABORTED")
    assert analyse(principal, get(principal, name)).pareto_verdict is None


def test_before_a_check_the_gains_are_those_that_the_model_expects(principal: Principal) -> None:
    name = several(principal, algorithm={"name": "gp"}, noisy=True, resampling={"name": "none"})
    lucky = 5

    def measured(trial: Trial) -> dict[str, float]:
        # Nothing depends on the parameters, so that the best run is luck.
        return {"seconds": 10.0 - 4.0 * (trial.number == lucky) + 0.1 * (trial.number % 3), "rate": 50.0}

    for _ in range(12):
        (trial,) = ask(principal, name)
        complete_trial(principal, name, trial.number, metrics=measured(trial))
    work(principal)
    found = analyse(principal, get(principal, name))
    seconds, rate = found.objectives
    stored = access.rows(DesignerState, principal).get(study_id=get(principal, name).pk).recommendation
    assert stored is not None
    assert seconds.best == min(values[0] for values in stored["values"])
    assert rate.best == max(values[1] for values in stored["values"])
    assert (seconds.default, rate.default) == tuple(stored["default"])
    assert seconds.best is not None
    assert seconds.best > 6.5, "the lucky run is not what the configuration would show again"
    assert seconds.gain == pytest.approx((stored["default"][0] - seconds.best) / stored["default"][0])
    assert (seconds.gain_low, seconds.gain_high) == (None, None)
