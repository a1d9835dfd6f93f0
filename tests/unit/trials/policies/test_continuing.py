"""A final check, or more budget, for a study that has ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from service.core.errors import Conflict, InvalidInput, TrimtabError
from service.core.lifecycle import TrialState
from service.planning.create import extend_budget, update_state
from service.results import analysis
from service.studies import actions
from service.studies.change import changing
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials.continuing import check_study
from service.trials.tell import finish
from service.tuner.verdict import Verdict
from service.workers import compute
from tests.factories.domain import make_execution, make_spec
from tests.unit.trials.policies.calls import (
    ask,
    check_to_the_end,
    create,
    get,
    seconds_of,
    tell,
    with_default,
    work,
)

RANDOM = {"name": "random"}


def search(principal: Principal, name: str, count: int) -> list[Trial]:
    trials = []
    for _ in range(count):
        (trial,) = ask(principal, name)
        trials.append(trial)
        tell(principal, name, trial, seconds_of(trial))
    return trials


def verdict_of(principal: Principal, name: str) -> Verdict:
    found = analysis.analyse(principal, get(principal, name)).verdict
    assert found is not None
    return found


def refused(code: str, call: Callable[[], object]) -> TrimtabError:
    with pytest.raises(TrimtabError) as caught:
        call()
    assert caught.value.code == code
    return caught.value


def entries(principal: Principal, action: str) -> list[AuditEntry]:
    return list(access.rows(AuditEntry, principal).filter(action=action).order_by("id"))


def ended(principal: Principal, **changes: Any) -> str:
    """Create a study of 6 trials, and measure it to the end of its search."""
    name = create(principal, with_default(algorithm=RANDOM, budget={"max_trials": 6}, **changes))
    search(principal, name, 6)
    assert (get(principal, name).state == "COMPLETED") == ("final_check" not in changes)
    return name


def test_a_study_without_a_check_is_given_one_later(principal: Principal) -> None:
    name = ended(principal)
    assert verdict_of(principal, name).trials == 0
    study = check_study(principal, name, {"max_trials": 12, "effects": 0})
    assert (study.state, study.spec["final_check"]) == ("ACTIVE", None)
    checks = check_to_the_end(principal, name)
    after = get(principal, name)
    assert (after.state, after.state_reason) == ("COMPLETED", "All 6 trials of the budget are done.")
    verdict = verdict_of(principal, name)
    assert (verdict.level, verdict.trials) == ("proven", len(checks))
    assert verdict.gain == pytest.approx(0.2)
    (entry,) = entries(principal, "study.check")
    assert entry.detail["max_trials"] == 12
    assert entry.before["study"] == {"state": "COMPLETED"}


def test_a_second_check_counts_only_its_own_trials(principal: Principal) -> None:
    name = ended(principal, final_check={"max_trials": 8, "effects": 0})
    first = check_to_the_end(principal, name)
    before = verdict_of(principal, name)
    check_study(principal, name, {"effects": 0})
    during = verdict_of(principal, name)
    assert (during.text, during.gain, during.trials) == (before.text, before.gain, before.trials), "until it is over"
    second: list[Trial] = []
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        assert (trial.origin, trial.number) == ("check", len(first) + len(second) + 7)
        second.append(trial)
        # The machine has become faster, the gain smaller.
        tell(principal, name, trial, 4.5 if trial.params["x"] > 0.5 else 5.0)
    assert len(second) == 8
    verdict = verdict_of(principal, name)
    assert verdict.default == pytest.approx(5.0)
    assert verdict.value == pytest.approx(4.5)
    assert verdict.gain == pytest.approx(0.1)
    assert verdict.trials == 8
    assert get(principal, name).earlier_checks == len(first)


def test_the_same_call_again_changes_nothing(principal: Principal) -> None:
    name = ended(principal)
    check_study(principal, name, {"max_trials": 8, "effects": 0}, request_id="once")
    revision = get(principal, name).revision
    check_study(principal, name, {"max_trials": 8, "effects": 0}, request_id="once")
    check_study(principal, name, {"max_trials": 8, "effects": 0}, request_id="another person")
    refused("check_under_way", lambda: check_study(principal, name, {"max_trials": 10, "effects": 0}))
    assert get(principal, name).revision == revision
    check_to_the_end(principal, name)
    # A copy of the first call that was late.
    check_study(principal, name, {"max_trials": 8, "effects": 0}, request_id="once")
    assert get(principal, name).state == "COMPLETED"
    extend_budget(principal, name, {"max_trials": 8})
    check_study(principal, name, {"max_trials": 8, "effects": 0}, request_id="once")
    extended = get(principal, name)
    extend_budget(principal, name, {"max_trials": 8})
    assert get(principal, name).revision == extended.revision
    assert (extended.state, extended.final_check) == ("ACTIVE", None)
    assert len(entries(principal, "study.check")) == 1
    assert len(entries(principal, "study.extend_budget")) == 1


def test_a_check_that_fails_half_way_leaves_the_study_as_it_was(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from service.trials import ending

    name = ended(principal, final_check={"max_trials": 8, "effects": 0})
    check_to_the_end(principal, name)
    before = get(principal, name)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ending, "go_on", killed)
        with pytest.raises(KeyboardInterrupt):
            check_study(principal, name, {"effects": 0})
    after = get(principal, name)
    for column in ("state", "revision", "final_check", "verdict", "added_count", "earlier_checks"):
        assert getattr(after, column) == getattr(before, column), column


def test_more_budget_continues_the_search_and_a_new_check_replaces_the_verdict(principal: Principal) -> None:
    name = ended(principal, final_check={"max_trials": 8, "effects": 0})
    checks = check_to_the_end(principal, name)
    before = verdict_of(principal, name)
    study = extend_budget(principal, name, {"max_trials": 9})
    assert (study.state, study.final_check) == ("ACTIVE", None)
    found = search(principal, name, 3)
    assert "check" not in {trial.origin for trial in found}
    assert found[0].number == 6 + len(checks) + 1
    during = verdict_of(principal, name)
    assert (during.text, during.configuration) == (before.text, before.configuration)
    second = check_to_the_end(principal, name)
    after = get(principal, name)
    assert after.state_reason == "All 9 trials of the budget are done."
    assert after.finished_count == 9 + len(checks) + len(second)
    assert verdict_of(principal, name).trials == len(second) == 8


def test_a_study_that_was_checked_once_is_checked_again_after_more_budget(principal: Principal) -> None:
    name = ended(principal)
    check_study(principal, name, {"max_trials": 10, "effects": 0})
    first = check_to_the_end(principal, name)
    extend_budget(principal, name, {"max_trials": 8})
    search(principal, name, 2)
    assert check_to_the_end(principal, name)
    after = get(principal, name)
    assert after.final_check is not None
    assert after.final_check["policy"]["max_trials"] == 10, "as in the first"
    assert after.earlier_checks == len(first)


def test_more_budget_without_a_check_ends_without_one(principal: Principal) -> None:
    name = ended(principal)
    extend_budget(principal, name, {"max_trials": 7})
    search(principal, name, 1)
    after = get(principal, name)
    assert (after.state, after.state_reason) == ("COMPLETED", "All 7 trials of the budget are done.")


def test_a_stopping_rule_does_not_end_an_extended_search_again(principal: Principal) -> None:
    spec = with_default(algorithm=RANDOM, budget={"max_trials": 50}, stopping={"rule": "trials", "trials": 4})
    name = create(principal, spec)
    search(principal, name, 4)
    assert "4 trials" in get(principal, name).state_reason
    # The budget of 50 trials is not spent: the same budget is more than what was used.
    extend_budget(principal, name, {"max_trials": 50})
    search(principal, name, 3)
    assert get(principal, name).state == "ACTIVE"
    extend_budget(principal, name, {"max_trials": 8})
    search(principal, name, 1)
    assert get(principal, name).state_reason == "All 8 trials of the budget are done."


def test_time_while_a_study_was_completed_does_not_count(principal: Principal) -> None:
    name = create(principal, with_default(algorithm=RANDOM, budget={"max_seconds": 60, "max_trials": 2}))
    search(principal, name, 2)
    # A day later.
    day = timedelta(days=1)
    of_study = access.rows(Trial, principal).filter(study_id=get(principal, name).pk)
    of_study.update(created_at=F("created_at") - day, finished_at=F("finished_at") - day)
    refused("invalid_argument", lambda: extend_budget(principal, name, {"max_trials": 4, "max_seconds": 1e-4}))
    study = extend_budget(principal, name, {"max_trials": 4})
    assert study.deadline is not None
    left = access.rows(Study, principal).filter(pk=study.pk).values_list(F("deadline") - Now(), flat=True).get()
    assert timedelta(seconds=40) < left <= timedelta(seconds=60)
    search(principal, name, 2)
    assert "4 trials" in get(principal, name).state_reason


@pytest.mark.usefixtures("predicting")
@pytest.mark.parametrize("on_agents", [False, True])
def test_a_check_that_comes_while_the_end_is_computed_begins_afterwards(principal: Principal, on_agents: bool) -> None:
    spec = with_default(algorithm={"name": "gp"}, resampling={"name": "none"}, final_check=None)
    spec["execution"] = make_execution() if on_agents else None
    name = create(principal, spec)
    work(principal)

    def run() -> list[str]:
        if not on_agents:
            trials = ask(principal, name)
            for trial in trials:
                tell(principal, name, trial, seconds_of(trial))
            return [trial.origin for trial in trials]
        origins = []
        with changing(principal, name, "test") as change:
            for trial in actions.waiting_trials(change, 1):
                actions.start_trials(change, [trial], agent="agent")
                origins.append(trial.origin)
                finish(change, trial, TrialState.COMPLETED, metrics={"seconds": seconds_of(trial)})
        work(principal)
        return origins

    for _ in range(3):
        assert run()
    update_state(principal, name, "COMPLETED")
    suggest = compute._suggest

    def requested_meanwhile(claim: compute.Claim) -> compute.Computed:
        compute._suggest = suggest
        computed = suggest(claim)
        check_study(principal, name, {"max_trials": 8, "effects": 0})
        return computed

    compute._suggest = requested_meanwhile
    try:
        work(principal)
    finally:
        compute._suggest = suggest
    origins: list[str] = []
    while get(principal, name).state == "ACTIVE":
        ran = run()
        assert ran, "nobody begins the check"
        origins += ran
    assert set(origins) == {"check"}
    assert verdict_of(principal, name).trials == len(origins)


def test_a_study_on_agents_gets_its_new_trials_at_once(principal: Principal) -> None:
    spec = with_default(algorithm=RANDOM, budget={"max_trials": 2}, final_check=None, execution=make_execution())
    name = create(principal, spec)

    def run_all() -> list[str]:
        origins: list[str] = []
        while True:
            # A report ends one trial in one change.
            with changing(principal, name, "test") as change:
                trials = actions.waiting_trials(change, 1)
                if not trials:
                    return origins
                actions.start_trials(change, trials, agent="agent")
                origins.append(trials[0].origin)
                finish(change, trials[0], TrialState.COMPLETED, metrics={"seconds": seconds_of(trials[0])})

    assert run_all() == ["default", "suggested"]
    extend_budget(principal, name, {"max_trials": 4})
    assert get(principal, name).requested_count == 2
    assert run_all() == ["suggested"] * 2
    assert get(principal, name).state == "COMPLETED"
    check_study(principal, name, {"max_trials": 8, "effects": 0})
    assert get(principal, name).requested_count > 0
    assert run_all() == ["check"] * 8
    assert get(principal, name).state == "COMPLETED"


def test_what_cannot_continue_is_refused(principal: Principal) -> None:
    name = create(principal, with_default(algorithm=RANDOM, budget={"max_trials": 2}))
    search(principal, name, 1)
    refused("search_not_over", lambda: check_study(principal, name, {"effects": 0}))
    search(principal, name, 1)
    error = refused("invalid_step", lambda: update_state(principal, name, "ACTIVE"))
    assert "Extend its budget" in error.message
    refused("invalid_argument", lambda: extend_budget(principal, name, {"max_trials": 2}))
    refused("invalid_argument", lambda: check_study(principal, name, {"max_trials": 4, "effects": 0}))
    assert get(principal, name).state == "COMPLETED"

    aborted = create(principal, with_default(algorithm=RANDOM))
    update_state(principal, aborted, "ABORTED")
    refused("invalid_step", lambda: check_study(principal, aborted))
    refused("search_over", lambda: extend_budget(principal, aborted, {"max_trials": 4}))

    without_default = create(principal, make_spec(algorithm=RANDOM))
    update_state(principal, without_default, "COMPLETED")
    with pytest.raises(InvalidInput):
        check_study(principal, without_default)


def test_a_space_that_is_measured_whole_takes_a_check_but_no_budget(principal: Principal) -> None:
    spec = with_default(algorithm={"name": "grid"}, noisy=False, budget={"max_trials": 4})
    spec["space"]["parameters"] = [{"name": "x", "type": "int", "min": 0, "max": 1, "default": 0}]
    name = create(principal, spec)
    for trial in ask(principal, name, 3):
        tell(principal, name, trial, seconds_of(trial))
    update_state(principal, name, "COMPLETED")
    with pytest.raises(Conflict) as caught:
        extend_budget(principal, name, {"max_trials": 9})
    assert caught.value.code == "space_exhausted"
    check_study(principal, name, {"effects": 0})
    assert {trial.origin for trial in check_to_the_end(principal, name)} == {"check"}
    assert verdict_of(principal, name).level == "proven"
