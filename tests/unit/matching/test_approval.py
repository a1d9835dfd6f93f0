"""Nobody makes other people's jobs use a record that no administrator has approved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from service.core.errors import Forbidden, TrimtabError
from service.fleet import component_files, runs
from service.fleet.models import Agent
from service.identity import tokens
from service.matching import approval, books, records
from service.matching.models import Record
from service.matching.submission import Submission
from service.planning import space_edits
from service.planning.create import create_study, delete_study, update_state
from service.results import summaries
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.permissions import Action, may
from service.tenancy.principal import Principal, Role, Scope
from service.trials import tell
from service.trials.ask import ask
from service.trials.continuing import check_study
from tests.factories.domain import make_execution, make_principal, make_spec, study_name
from tests.factories.fleet import acquire, refused, register, settle, study
from tests.factories.matching import make_job, make_record
from tests.unit.matching.studies import faster, record_of, run_to_the_end
from tests.unit.trials.policies.calls import with_default


@pytest.fixture
def member(principal: Principal) -> Principal:
    return replace(principal, actor="mallory", role=Role.MEMBER)


def matched(principal: Principal, record: Record, user: str) -> bool:
    """Return whether a job that is equal to the record's, but of this user, gets the settings."""
    job = make_job(
        user=user,
        **{name: getattr(record, name) for name in ("name", "program", "command_line", "submitted_at", "nodes")},
    )
    found = books.match(principal, Submission(job, cluster_nodes=8))
    return [str(one.record.pk) for one in found] == [str(record.pk)]


def tuned(owner: Principal, principal: Principal, **spec: Any) -> Record:
    """Return the record of a study of `owner`, whose trials an agent of the tenant has run."""
    name = start_as(owner, principal, **spec)
    run_to_the_end(principal, name)
    return record_of(principal, name)


def start_as(owner: Principal, principal: Principal, **spec: Any) -> str:
    register(principal)
    wanted = {"budget": {"max_trials": 6}, "final_check": {"max_trials": 12, "effects": 0}, **spec}
    return create_study(owner, study_name(), with_default(execution=make_execution(parallelism=1), **wanted)).name


def test_a_record_is_for_jobs_of_its_creator_until_an_administrator_approves_it(
    principal: Principal, member: Principal
) -> None:
    record = tuned(member, principal)
    assert (record.state, record.audience, record.user) == ("ACTIVE", "user", "mallory")
    assert "only jobs of its own user" in record.state_reason
    assert matched(principal, record, "mallory")
    assert not matched(principal, record, "victim")
    # A member changes nothing about that, in whatever order of steps.
    for state in ("ACTIVE", "WITHDRAWN", "ACTIVE"):
        records.change(member, str(record.pk), state)
    assert not matched(principal, record, "victim")
    approved = records.change(principal, str(record.pk), "ACTIVE")
    assert (approved.audience, approved.state_reason) == ("everybody", "tester has approved it.")
    assert matched(principal, record, "victim")
    assert matched(principal, record, "mallory")
    entry = access.rows(AuditEntry, principal).filter(target=f"record/{record.pk}").latest("pk")
    assert (entry.actor, entry.before["record"]["audience"], entry.after["record"]["audience"]) == (
        "tester", "user", "everybody",
    )  # fmt: skip


def test_a_record_for_another_user_waits_for_an_administrator(principal: Principal, member: Principal) -> None:
    record = tuned(member, principal, job={"user": "victim"})
    assert (record.state, record.cause) == ("WITHDRAWN", "approval")
    assert "for jobs of victim, and mallory has created the study" in record.state_reason
    with pytest.raises(Forbidden):
        records.change(member, str(record.pk), "ACTIVE")
    assert not matched(principal, record, "victim")
    records.change(principal, str(record.pk), "ACTIVE")
    assert matched(principal, record, "victim")


def test_an_approval_holds_for_the_settings_that_were_approved(principal: Principal, member: Principal) -> None:
    """The record is withdrawn by a member, gets other settings, and is restored by the member."""
    record = tuned(member, principal, job={"user": "victim"})
    records.change(principal, str(record.pk), "ACTIVE")
    records.change(member, str(record.pk), "WITHDRAWN")
    check_study(member, record.study_name)
    run_to_the_end(principal, record.study_name, lambda params: 0.5 * faster(params))
    after = record_of(principal, record.study_name)
    assert after.params is not None
    assert (after.cause, after.gain == record.gain) == ("person", False)
    with pytest.raises(Forbidden):
        records.change(member, str(record.pk), "ACTIVE")
    assert not matched(principal, record, "victim")


def test_a_tenant_may_do_without_approval(principal: Principal, member: Principal) -> None:
    assert approval.is_needed(principal)
    approval.require(principal, False)
    record = tuned(member, principal, job={"user": "victim"})
    assert (record.state, record.audience) == ("ACTIVE", "everybody")
    assert matched(principal, record, "victim")
    assert not approval.is_needed(principal)
    assert approval.is_needed(make_principal())
    (entry,) = access.rows(AuditEntry, principal).filter(action="matching.configure")
    assert (entry.target, entry.before, entry.after) == ("approval", {"approval": True}, {"approval": False})
    approval.require(principal, False)
    assert access.rows(AuditEntry, principal).filter(action="matching.configure").count() == 1


def test_the_setting_holds_for_records_that_are_looked_at_again(principal: Principal, member: Principal) -> None:
    record = tuned(member, principal)
    approval.require(principal, False)
    summaries.summarise(principal, study(principal, record.study_name).pk)
    assert record_of(principal, record.study_name).audience == "everybody"


@pytest.mark.parametrize("role", Role)
def test_administrators_approve_and_say_whether_it_is_needed(role: Role) -> None:
    for action in (Action.MATCHING_CONFIGURE, Action.RECORD_APPROVE):
        assert may(Principal(1, "x", role), action) == (role in (Role.ADMIN, Role.OPERATOR))


def test_a_token_of_an_administrator_without_that_scope_approves_nothing(principal: Principal) -> None:
    script = replace(principal, actor="script", scopes=frozenset({Scope.TUNE}))
    record = tuned(script, principal, job={"user": "victim"})
    assert record.cause == "approval"
    with pytest.raises(Forbidden):
        records.change(script, str(record.pk), "ACTIVE")


def test_results_that_a_member_reports_prove_nothing(principal: Principal, member: Principal) -> None:
    """The attack as it was found: no noise, the victim's name, and eight results that nobody has measured."""
    approval.require(principal, False)
    register(principal)
    spec = with_default(
        execution=make_execution(parallelism=1), noisy=False, job={"user": "victim"}, budget={"max_trials": 8}
    )
    name = create_study(member, study_name(), spec).name
    for place in range(8):
        tell.add_trial(
            member,
            name,
            params={"x": 0.5 + place / 20, "n": 4},
            metrics={"seconds": 100.0 if place == 0 else 1.0 / place},
        )
    run_to_the_end(principal, name, lambda params: 100.0)
    summaries.refresh()
    found = records.page(principal, study=name).items
    assert [(one.state, one.cause) for one in found] in ([], [("WITHDRAWN", "approval")])
    assert not any(matched(principal, one, "victim") for one in found)


def test_a_member_reports_no_result_for_an_agent(principal: Principal, member: Principal) -> None:
    name = start_as(member, principal)
    (grant,) = acquire(principal)
    forged: Mapping[str, object] = {"seconds": 0.001}
    refused("trial_runs_on_agent", lambda: tell.complete_trial(member, name, grant.trial, metrics=forged))
    refused("trial_runs_on_agent", lambda: tell.complete_trials(member, name, [(grant.trial, forged)]))
    refused("trial_runs_on_agent", lambda: tell.fail_trial(member, name, grant.trial, infeasible=True))
    for action in (Action.AGENT_RUN, Action.AGENT_ENROL, Action.MATCH_REPORT):
        assert not may(member, action)
    refused("invalid_argument", lambda: tokens.create(member, name="agent", scopes=["agent"]))
    # The scope of administrators makes nobody one.
    _, text = tokens.create(member, name="all", scopes=["admin"])
    assert not may(tokens.find(text), Action.AGENT_RUN)
    row = access.rows(Trial, principal).get(study__name=name, number=grant.trial)
    assert (row.state, row.metrics) == ("ACTIVE", None)


def test_an_agent_settles_only_what_it_holds(principal: Principal, member: Principal) -> None:
    name = start_as(member, principal)
    (grant,) = acquire(principal)
    register(principal, "other")
    with pytest.raises(TrimtabError):
        runs.settle(principal, agent_id="other", lease=grant.lease, outcome="completed", metrics={"seconds": 0.1})
    assert study(principal, name).finished_count == 0


def test_a_check_of_which_a_person_stops_runs_needs_approval(principal: Principal, member: Principal) -> None:
    """A person who stops the runs that look bad chooses the result."""
    approval.require(principal, False)
    name = start_as(member, principal)
    stopped = 0
    while study(principal, name).state == "ACTIVE":
        (grant,) = acquire(principal)
        trial = access.rows(Trial, principal).get(study__name=name, number=grant.trial)
        if trial.origin == "check" and not stopped:
            tell.stop_trial(member, name, grant.trial)
            stopped += 1
            settle(principal, grant, "cancelled")
            continue
        settle(principal, grant, seconds=faster(grant.params))
    record = record_of(principal, name)
    assert (record.state, record.cause) == ("WITHDRAWN", "approval")
    assert "stopped 1 run" in record.state_reason


def test_runs_from_before_an_edit_prove_nothing_about_the_added_value(principal: Principal, member: Principal) -> None:
    """A parameter is added with a default that no run has had."""
    approval.require(principal, False)
    name = start_as(member, principal, noisy=False, final_check=None, budget={"max_trials": 30})
    for _ in range(8):
        (grant,) = acquire(principal)
        settle(principal, grant, seconds=8.0 if float(grant.params["x"]) > 0.5 else 10.0)
    space_edits.edit_space(member, name, {"add": [{"name": "evil", "type": "int", "min": 1, "max": 9, "default": 9}]})
    update_state(member, name, "COMPLETED")
    summaries.refresh()
    for record in records.page(principal, study=name).items:
        assert (record.state, record.cause) == ("WITHDRAWN", "approval")
        assert "edit of the space" in record.state_reason


def test_a_component_that_a_member_writes_is_offered_by_no_agent(principal: Principal, member: Principal) -> None:
    """One that only echoes the number that its author wants, say: an administrator of a cluster has to install it."""
    text = "name: echo\napplications: {main: {command: [echo, 'seconds: 0.001']}}\n"
    component_files.write(member, text, after=0)
    register(principal)
    offered = access.rows(Agent, principal).values_list("components", flat=True)
    assert [one["name"] for components in offered for one in components] == ["compiler"]


def test_a_deleted_study_leaves_no_record_that_a_member_widens(principal: Principal, member: Principal) -> None:
    record = tuned(member, principal)
    delete_study(member, record.study_name)
    restored = records.change(member, str(record.pk), "ACTIVE")
    assert (restored.state, restored.audience) == ("ACTIVE", "user")
    assert not matched(principal, restored, "victim")


def test_the_owner_of_a_study_is_who_has_created_it(principal: Principal, member: Principal) -> None:
    """No field of a request says whose study it is, so that nobody becomes the victim."""
    created = create_study(member, study_name(), make_spec())
    assert (created.owner, created.by_administrator) == ("mallory", False)
    ask(replace(principal, actor="victim"), created.name, count=1, client_id="c")
    assert study(principal, created.name).owner == "mallory"


def test_an_earlier_record_stays_for_everybody(principal: Principal) -> None:
    record = make_record(principal)
    assert matched(principal, record, "victim")
