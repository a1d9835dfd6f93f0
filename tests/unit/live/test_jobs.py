"""Production jobs as trials: their places in pairs, what their ends mean, the guards, the budget, and the end."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from service.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from service.core.reasons import Reason, data_of
from service.fleet import live, waiting
from service.live import job_choice, job_closing
from service.live.models import JobPair, LiveLease, PairState
from service.live.system import state_of
from service.matching import feedback, records
from service.matching.models import Record
from service.notices.models import Notice
from service.studies.change import read
from service.studies.models import Study
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal, Role
from tests.factories.domain import make_principal
from tests.factories.fleet import study, trial
from tests.factories.live_jobs import (
    BUDGET,
    LIMIT,
    PROVEN,
    ask,
    create_jobs_study,
    end,
    make_proven,
    run_pair,
    run_usual,
)
from tests.factories.matching import make_record, make_report, make_submission
from trimtab_components.pairs import candidate_first, commitment


@pytest.fixture
def record(principal: Principal) -> Record:
    return make_proven(principal)


def code(reason: str) -> str:
    return reason.code if isinstance(reason, Reason) else ""


def pairs(principal: Principal) -> list[JobPair]:
    return list(access.rows(JobPair, principal).order_by("pk"))


def audited(principal: Principal, action: str) -> list[Mapping[str, Any]]:
    return list(
        access.rows(AuditEntry, principal).filter(action=action).order_by("pk").values_list("detail", flat=True)
    )


def test_a_pair_of_jobs_follows_the_committed_coin(principal: Principal, record: Record) -> None:
    name = create_jobs_study(principal, record)
    run_usual(principal, record)
    one, first = ask(principal, record)
    two, second = ask(principal, record, begin=False)
    assert {first.candidate, second.candidate} == {True, False}
    assert (first.study, first.trial, first.waits, second.waits) == (name, 1, True, False)
    assert first.params == second.params == {**PROVEN, **trial(principal, name, 1).params}
    [lease] = access.rows(LiveLease, principal)
    assert first.candidate == candidate_first(lease.seed, 1)
    begun, joined = audited(principal, "live.explore")
    assert begun["commitment"] == lease.commitment == commitment(lease.seed)
    assert (begun["submission"], joined["submission"], begun["user"]) == (one, two, "ada")
    assert lease.seed not in str([begun, joined])
    # An answer that was lost is given again, and another job has no place.
    assert ask(principal, record, submission=one)[1] == first.__class__(**{**_plain(first), "waits": False})
    assert code(ask(principal, record, begin=False)[1].reason) == "live_no_pair_waits"
    assert len(audited(principal, "live.explore")) == 2


def _plain(place: job_choice.Place) -> dict[str, Any]:
    return {name: getattr(place, name) for name in place.__dataclass_fields__}


def test_a_candidate_that_is_kept_becomes_the_settings_of_the_record(principal: Principal, record: Record) -> None:
    name = create_jobs_study(principal, record)
    run_usual(principal, record)
    candidate = trial(principal, name, 1).params
    for _ in range(10):
        run_pair(principal, record, candidate=60 + random.Random(1).random(), incumbent=100)
        if trial(principal, name, 1).state == "COMPLETED":
            break
    first = trial(principal, name, 1)
    assert first.live is not None
    assert (first.state, first.live["decision"], first.live["kept"]) == ("COMPLETED", "keep", True)
    assert first.live["high"] < 0
    found = records.get(principal, str(record.pk))
    assert found.settings == {**PROVEN, **candidate}
    assert found.params == PROVEN, "the proof stays"
    assert found.kept == {"params": {**PROVEN, **candidate}, "study": name, "trial": 1}
    assert "has kept its settings: -" in found.state_reason
    assert found.active_since > record.active_since, "earlier jobs have had other settings"
    assert state_of(principal, study(principal, name)).incumbent == {
        "depth": candidate["depth"],
        "share": candidate["share"],
    }
    assert trial(principal, name, 2).state == "REQUESTED"
    # The kept settings need jobs of their own before the next pair.
    assert code(ask(principal, record)[1].reason) == "live_new_kind"
    # Who restores the record goes back to its proof, and the study compares with other settings now.
    records.change(principal, str(record.pk), "WITHDRAWN")
    found = records.change(principal, str(record.pk), "ACTIVE")
    assert found.settings == PROVEN
    assert code(ask(principal, found)[1].reason) == "live_record_changed"


def test_a_loss_ends_the_trial_and_is_in_the_ledger(principal: Principal, record: Record) -> None:
    name = create_jobs_study(principal, record)
    run_usual(principal, record, 200)
    for _ in range(12):
        run_pair(principal, record, candidate=150, incumbent=100)
        if trial(principal, name, 1).state != "ACTIVE":
            break
    first = trial(principal, name, 1)
    assert first.live is not None
    assert (first.state, first.live["decision"]) == ("COMPLETED", "harm")
    count = first.live["pairs"]
    assert records.get(principal, str(record.pk)).settings == PROVEN
    found = live.status(principal, name)
    assert found.budgets[0].spent == pytest.approx(count * 2 * 50 / 3600)
    assert found.jobs is not None
    assert (found.jobs.counted, found.jobs.void, found.jobs.open, found.jobs.candidates) == (count, 0, 0, count)
    # Feedback on the record compares jobs with its settings and controls alone.
    assert feedback.of(principal, [record.pk])[record.pk].applied <= 40


def test_a_failed_candidate_breaks_the_guard_and_three_of_them_pause_the_study(
    principal: Principal, record: Record
) -> None:
    name = create_jobs_study(principal, record)
    run_usual(principal, record, 200)
    run_pair(principal, record, candidate_end="FAILED", incumbent_end="FAILED")
    assert trial(principal, name, 1).state == "ACTIVE", "the application is at fault"
    for number in (1, 2, 3):
        run_pair(principal, record, candidate_end="FAILED")
        assert trial(principal, name, number).state == "INFEASIBLE"
    found = study(principal, name)
    assert found.state == "PAUSED"
    assert data_of(found.state_reason, found.state_reason_data)["code"] == "live_frozen"  # type: ignore[index]
    assert code(ask(principal, record)[1].reason) == "live_no_trial"


def test_jobs_that_are_no_evidence(principal: Principal, record: Record) -> None:
    create_jobs_study(principal, record)
    run_usual(principal, record, 300)
    run_pair(principal, record, candidate_end="CANCELLED")
    run_pair(principal, record, incumbent_end="CANCELLED")
    # The agent has not applied what the job was to get, or the scheduler does not know the job.
    for changes in ({"decision": "APPLIED"}, {"decision": "EXPLORED", "confirmed": False}):
        for job, place in [ask(principal, record), ask(principal, record, begin=False)]:
            given: dict[str, Any] = {"decision": "APPLIED", "submission": job}
            end(principal, record, 100, **(given | changes if place.candidate else given))
    assert [one.state for one in pairs(principal)] == [PairState.VOID] * 4
    lost = [2 * seconds / 3600 for seconds in (100, 100, 0, LIMIT)]
    assert [one.cost for one in pairs(principal)] == [pytest.approx(one) for one in lost]


def test_a_lost_report_costs_the_time_limit(principal: Principal, record: Record) -> None:
    create_jobs_study(principal, record)
    run_usual(principal, record, 300)
    for job, place in [ask(principal, record), ask(principal, record, begin=False)]:
        if not place.candidate:
            end(principal, record, submission=job)
    [pair] = pairs(principal)
    assert (pair.state, pair.cost) == (PairState.OPEN, 2 * LIMIT / 3600)
    later = timedelta(days=7, seconds=LIMIT + 1)
    access.rows(JobPair, principal).update(began_at=pair.began_at - later, second_at=pair.began_at - later)
    ask(principal, record)
    pair = pairs(principal)[0]
    assert (pair.state, pair.cost) == (PairState.VOID, 2 * LIMIT / 3600)


def test_a_second_job_that_never_comes(principal: Principal, record: Record) -> None:
    create_jobs_study(principal, record)
    run_usual(principal, record, 300)
    job, first = ask(principal, record)
    end(principal, record, 90, "EXPLORED" if first.candidate else "APPLIED", submission=job)
    access.rows(JobPair, principal).update(began_at=timezone.now() - timedelta(days=1, seconds=1))
    _, other = ask(principal, record)
    assert other.waits, "a new pair begins"
    [pair, _] = pairs(principal)
    assert pair.state == PairState.VOID
    assert pair.cost == pytest.approx(2 * 90 / 3600 if first.candidate else 0.0)


def test_jobs_that_are_not_fit(principal: Principal, record: Record) -> None:
    create_jobs_study(principal, record)
    run_usual(principal, record, 2)
    assert code(ask(principal, record)[1].reason) == "live_new_kind"
    run_usual(principal, record, 1)
    assert code(ask(principal, record, limit=0)[1].reason) == "live_no_time_limit"
    assert code(ask(principal, record, limit=119)[1].reason) == "live_near_time_limit"
    assert code(ask(principal, record, submitted=make_submission(nodes=4))[1].reason) == "live_new_kind"
    assert code(ask(principal, record)[1].reason) == "live_few_jobs"
    run_usual(principal, record, 57)
    assert ask(principal, record)[1].study
    assert code(ask(principal, record, submitted=make_submission(user="bob"))[1].reason) == "live_new_kind"
    assert code(ask(principal, record, limit=601)[1].reason) == "live_pairs_open"
    assert pairs(principal)[0].second == ""


def test_as_many_pairs_are_open_as_have_ended(principal: Principal, record: Record) -> None:
    create_jobs_study(principal, record)
    run_usual(principal, record, 500)
    for _ in range(3):
        run_pair(principal, record, 101, 100)
    open_ones = 0
    while (place := ask(principal, record)[1]).study:
        open_ones += place.waits
    assert open_ones == 3
    assert code(place.reason) == "live_pairs_open"


def test_a_record_for_its_own_user_alone_is_explored_by_nobody_else(principal: Principal) -> None:
    record = make_proven(principal, audience="user")
    create_jobs_study(principal, record)
    others = make_submission(user="bob")
    job_closing.report(principal, [make_report(record, submitted=others) for _ in range(60)])
    assert code(ask(principal, record, submitted=others)[1].reason) == "live_record_changed"


def test_another_tenant_has_no_part_in_it(principal: Principal, record: Record) -> None:
    other = make_principal()
    create_jobs_study(principal, record)
    run_usual(principal, record)
    with pytest.raises(NotFound):
        ask(other, record)
    name, place = ask(principal, record)
    end(other, make_proven(other), submission=name, decision="EXPLORED")
    assert place.study
    assert [one.state for one in pairs(principal)] == [PairState.OPEN]


@pytest.mark.parametrize("seed", range(2))
def test_the_losses_and_what_may_still_be_lost_stay_within_the_budget(principal: Principal, seed: int) -> None:
    """When a pair begins, the sum of all costs is within the limit, and the ends of jobs add nothing."""
    draw, record = random.Random(seed), make_proven(principal)
    losses = {"node_hours": {**BUDGET["node_hours"], "most": 0.15}}
    name = create_jobs_study(principal, record, {"budget": losses, "pairs": {"least": 2, "most": 1000}, "freeze": 1.0})
    run_usual(principal, record, 60)
    waiting_jobs: list[tuple[str, bool]] = []
    begun = refused = 0
    for _ in range(40):
        limit = draw.choice([150.0, 300.0, 900.0])
        before = live.status(principal, name).budgets[0]
        job, place = ask(principal, record, begin=draw.random() < 0.7, limit=limit)
        after = live.status(principal, name).budgets[0]
        if place.study:
            waiting_jobs.append((job, place.candidate))
        if after.spent > before.spent:
            begun += 1
            assert after.limit is not None
            assert after.spent <= after.limit + 1e-9
        refused += code(place.reason) == "live_job_budget_used"
        if waiting_jobs and draw.random() < 0.7:
            job, candidate = waiting_jobs.pop(draw.randrange(len(waiting_jobs)))
            spent = live.status(principal, name).budgets[0].spent
            how = draw.choice(["COMPLETED", "COMPLETED", "CANCELLED", "FAILED" if not candidate else "COMPLETED"])
            end(
                principal,
                record,
                draw.uniform(10, 150),
                "EXPLORED" if candidate else "APPLIED",
                submission=job,
                end=how,
            )
            assert live.status(principal, name).budgets[0].spent <= spent + 1e-9
    assert begun > 1
    assert refused > 0


def test_too_few_jobs_are_said_and_end_the_study(principal: Principal, record: Record) -> None:
    name = create_jobs_study(principal, record)
    run_usual(principal, record, 12)
    waiting.tell()
    first = trial(principal, name, 1)
    assert data_of(first.reason, first.reason_data) == {
        "code": "live_few_jobs",
        "values": {"record": str(record.pk), "jobs": 12, "needed": 60, "days": 28, "share": 0.1},
    }
    found = live.status(principal, name).jobs
    assert found is not None
    assert (found.matched, found.candidates, code(found.reason)) == (12, 0, "live_few_jobs")
    # The share of the agent that asks counts from now on.
    assert code(ask(principal, record, share=0.02)[1].reason) == "live_few_jobs"
    waiting.tell()
    assert trial(principal, name, 1).reason.endswith("share of 2 % need 300.")
    access.rows(Study, principal).filter(name=name).update(created_at=timezone.now() - timedelta(days=29))
    waiting.tell()
    ended = study(principal, name)
    assert ended.state == "PAUSED"
    assert data_of(ended.state_reason, ended.state_reason_data)["code"] == "live_paused_few_jobs"  # type: ignore[index]
    assert access.rows(Notice, principal).count() == 1


def test_enough_jobs_wait_for_an_agent_and_an_approval_comes_first(principal: Principal, record: Record) -> None:
    name = create_jobs_study(principal, record, {"approve": "each"})
    run_usual(principal, record)
    waiting.tell()
    assert code_of(principal, name) == "live_approval_waiting"
    assert code(ask(principal, record)[1].reason) == "live_approval_waiting"
    live.decide(principal, name, 1, approve=True)
    waiting.tell()
    assert code_of(principal, name) == "live_next_job"
    assert ask(principal, record)[1].study == name
    assert trial(principal, name, 1).state == "ACTIVE"


def code_of(principal: Principal, name: str) -> str:
    first = trial(principal, name, 1)
    found = data_of(first.reason, first.reason_data)
    return "" if found is None else str(found["code"])


def test_the_red_button_ends_the_trial_and_no_pair_goes_on(principal: Principal, record: Record) -> None:
    name = create_jobs_study(principal, record)
    run_usual(principal, record)
    job, place = ask(principal, record)
    live.stop(principal, name)
    assert trial(principal, name, 1).state == "PRUNED"
    assert code(ask(principal, record, begin=False)[1].reason) == "live_no_trial"
    # What the first job has cost still counts.
    access.rows(JobPair, principal).update(began_at=timezone.now() - timedelta(days=1, seconds=1))
    end(principal, record, 80, "EXPLORED" if place.candidate else "APPLIED", submission=job)
    [pair] = pairs(principal)
    assert pair.state == PairState.VOID
    assert pair.cost == pytest.approx(2 * 80 / 3600 if place.candidate else 0.0)


def test_what_a_study_of_jobs_cannot_have(principal: Principal, record: Record) -> None:
    def refused(wanted: Record | str, **rules: Any) -> str:
        with pytest.raises(InvalidInput) as error:
            create_jobs_study(principal, wanted, rules)
        return str(error.value.data["field"])

    assert refused("x") == "live.record"
    assert refused(record, guards={"g": {"metric": "m", "above": 1}}) == "live.guards"
    slow = {"metric": "slow", "of": "requests", "most": 0.01}
    assert refused(record, budget={"slow": slow}) == "live.budget.slow"
    assert refused(make_proven(principal, params={"depth": 100})) == "space[0]"
    assert refused(make_record(principal, component="another")) == "live.record"
    with pytest.raises(NotFound):
        create_jobs_study(principal, "999999")
    with pytest.raises(Conflict, match="is WITHDRAWN"):
        create_jobs_study(principal, make_proven(principal, state="WITHDRAWN"))
    with pytest.raises(Forbidden):
        create_jobs_study(replace(principal, role=Role.MEMBER), record)
    name = create_jobs_study(principal, record)
    with pytest.raises(Conflict, match="explores the jobs"):
        create_jobs_study(principal, record)
    spec = read(principal, study(principal, name).pk).spec
    assert spec.space.default() == {"depth": 8, "share": 0.5}, "the settings of the record"


def test_a_question_out_of_bounds_is_refused(principal: Principal, record: Record) -> None:
    for changes, field in (
        ({"share": 0.11}, "share"),
        ({"share": 0.0}, "share"),
        ({"limit": -1.0}, "limit_seconds"),
        ({"submission": "x"}, "submission"),
        ({"submitted": make_submission(nodes=0)}, "job.nodes"),
    ):
        with pytest.raises(InvalidInput) as refused:
            ask(principal, record, **changes)
        assert refused.value.data["field"] == field
    assert code(ask(principal, record)[1].reason) == "live_no_study"
