"""Each change and each export has an entry in the audit trail: every REST route and every gRPC method.

The routes are those of the OpenAPI schema and the methods those of the protocol, so a new one is either tried here, or
named with the reason why it needs no entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from service.api.v1 import tenancy as tenancy_views
from service.core.errors import ResourceExhausted, Unauthenticated
from service.fleet.models import Agent, Lease
from service.identity import sessions, sign_ins, tokens
from service.identity.models import ApiToken
from service.identity.oidc import Proof
from service.identity.principals import administrator
from service.planning import sample_data
from service.platform.rates import Rate
from service.rpc.interceptors import declared_for
from service.tenancy import access
from service.tenancy.models import AuditEntry, Tenant
from service.tenancy.principal import Principal, Role
from tests.factories.furnished import STUDY, Furnished, furnish
from tests.unit.tenancy.test_isolation import routes, signed_in
from tests.unit.tenancy.test_permissions import METHODS

EXPORTS = {"exportAudit", "exportTenant", "exportCsv", "exportJson", "exportVerdict"}
# Operations of other methods than GET that change nothing of the tenant, each with its reason.
NOTHING = {
    "planStudy": "computes a plan",
    "askDryRun": "asks agents to show what they would run; nothing runs, and the answer is forgotten",
    "checkComponent": "reads a text",
    "readBatchScript": "reads a text",
    "checkStudyName": "looks up a name",
    "matchJob": "looks up records",
    "renewTrials": "keeps for a client the trials that it has",
    "readNotices": "moves the caller's own mark",
    # The study of the fixture has no default to compare with; `changing` writes the entry, as for its neighbours.
    "checkStudy": "is refused",
}
# The action in the trail, and a request that can succeed where the one of the isolation tests cannot.
ENTRIES: dict[str, str] = {
    "signIn": "login.sign_in",
    "signOut": "login.sign_out",
    "exportAudit": "audit.export",
    "exportTenant": "tenant.export",
    "exportCsv": "study.export",
    "exportJson": "study.export",
    "exportVerdict": "study.export",
    "createApiToken": "token.create",
    "revokeApiToken": "token.revoke",
    "createEnrolment": "agent.allow",
    "orderComponent": "component.install",
    "revokeAgent": "agent.revoke",
    "revokeAccess": "access.revoke",
    "createStudy": "study.create",
    "updateStudy": "study.update_state",
    "deleteStudy": "study.delete",
    "createSampleData": "study.create",
    "deleteSampleData": "study.delete",
    "createTenant": "tenant.create",
    "changeTenant": "tenant.change",
    "changeRecord": "record.withdraw",
    "updateMatchingSettings": "matching.configure",
    "updateMatchingApproval": "matching.configure",
    "createChannel": "channel.create",
    "deleteChannel": "channel.delete",
    "testChannel": "channel.test",
    "stopLive": "live.stop",
    "approvePlan": "live.approve",
    "declinePlan": "live.decline",
}
CHANGED = {
    "signIn": {"token": "test-token"},
    "createApiToken": {"name": "strange", "scopes": ["read"], "study": STUDY},
}
# Methods of gRPC that do the same as an operation over REST, by the same action.
SAME = {
    "CreateStudy": "createStudy", "UpdateStudyState": "updateStudy", "ExtendBudget": "extendBudget",
    "CheckStudy": "checkStudy", "ChangeSpace": "changeSpace", "EditSpace": "editSpace", "DeleteStudy": "deleteStudy",
    "SuggestTrials": "suggestTrials", "RenewTrials": "renewTrials", "AddTrial": "addTrial",
    "EnqueueTrials": "enqueueTrials", "ReplaceParams": "replaceParams",
    "ReportMeasurement": "reportMeasurement", "CompleteTrial": "completeTrial",
    "CompleteTrials": "completeTrials", "FailTrial": "failTrial", "StopTrial": "stopTrial",
    "ChangeNote": "changeStudyNote", "CreateApiToken": "createApiToken", "RevokeApiToken": "revokeApiToken",
    "CreateEnrolment": "createEnrolment", "RevokeAgent": "revokeAgent", "RevokeAccess": "revokeAccess",
    "ChangeRecord": "changeRecord", "UpdateSettings": "updateMatchingSettings",
    "UpdateApproval": "updateMatchingApproval", "DecidePlan": "approvePlan", "StopLive": "stopLive",
}  # fmt: skip
# Methods that only read, and those of agents. Tests of the fleet hold the entries of the latter.
READ = {
    "GetSignIn", "WhoAmI", "ListApiTokens", "ListAuditEntries", "ParseStudyFile", "GetStudyFile", "GetStudy",
    "ListStudies", "GetOperation", "WaitOperation", "GetTrial", "ListNotes", "ListTrials", "GetBestTrials",
    "GetProspects", "ListAgents", "ListBestSettings", "WatchStudy", "Match", "ListRecords", "ListJobs", "GetSettings",
    "GetApproval", "GetComponentFile", "RenderSettings", "GetLive", "ListLive", "GetInsight",
}  # fmt: skip
AGENTS = {
    "Enrol": "agent.enrol",
    "RenewCredential": "agent.renew",
    "Register": "agent.register",
    "AcquireLeases": "trial.start",
    "SettleLease": "lease.settle",
    "RenewLeases": "keeps what the agent has",
    "ReportStarted": "the machine's own news of a trial whose start has an entry",
    "ReportMeasurement": "lease.report",
    "AppendLog": "output of a trial",
    "PutArtifact": "output of a trial",
    "AnswerDryRun": "what the agent would run",
    "ReportLive": "what the agent sees each second; kept settings that are taken back have an entry",
    "AnswerComponentOrder": "component.answer",
    "Explore": "a pair of jobs within a study, whose results have entries",
    "ReportJobs": "jobs of the cluster; a record that they withdraw has an entry",
}


def let_agent_go(principal: Principal) -> None:
    access.rows(Lease, principal).update(state="SETTLED")
    access.rows(Agent, principal).update(last_seen_at=Now() - timedelta(days=1))


def let_install(principal: Principal) -> None:
    offered = [{"name": "redis", "version": "1", "installed": ""}]
    access.rows(Agent, principal).update(installable=offered, last_seen_at=Now())


# What makes an operation possible.
PREPARED: dict[str, Callable[[Principal], object]] = {
    "forgetAgent": let_agent_go,
    "orderComponent": let_install,
    "deleteSampleData": sample_data.create,
}


@pytest.fixture
def furnished(db: None) -> Furnished:
    return furnish()


@pytest.fixture(autouse=True)
def no_earlier_sign_ins() -> None:
    for rate in (sign_ins.signed_in, sign_ins.refused_from, sign_ins.refused_by_all):
        rate.clear()


@pytest.fixture(autouse=True)
def in_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenancy_views, "stream", iter)


def entries() -> list[AuditEntry]:
    """Return all entries of all tenants, the oldest first."""
    keys = Tenant._default_manager.values_list("pk", flat=True)
    found = [entry for key in keys for entry in access.rows(AuditEntry, Principal.system(key))]
    return sorted(found, key=lambda entry: entry.pk)


def test_each_operation_over_rest_has_an_entry(furnished: Furnished) -> None:
    caller = signed_in(replace(furnished.principal, role=Role.OPERATOR))
    faults, tried = [], set()
    for name, method, path, body in routes(furnished):
        if name in NOTHING or (method == "GET" and name not in EXPORTS):
            continue
        tried.add(name)
        content = CHANGED.get(name, body)
        with transaction.atomic():
            if name in PREPARED:
                PREPARED[name](furnished.principal)
            before = entries()
            answer: Any = caller().generic(
                method, path, b"" if content is None else json.dumps(content).encode(), "application/json"
            )
            reported = b"".join(answer) if answer.streaming else answer.content
            new = entries()[len(before) :]
            if answer.status_code >= 400:
                faults.append(f"{name}: {answer.status_code} {reported.decode()[:200]}")
            elif not new:
                faults.append(f"{name}: no entry")
            elif name in ENTRIES and ENTRIES[name] not in [entry.action for entry in new]:
                faults.append(f"{name}: {[entry.action for entry in new]}")
            elif not all(entry.actor for entry in new):
                faults.append(f"{name}: no actor")
            transaction.set_rollback(True)
    assert not faults, "\n".join(faults)
    assert {*ENTRIES} <= tried
    assert len(tried) > 30


def test_each_method_of_grpc_is_one_of_these(furnished: Furnished) -> None:
    names = {method.name for _, method in METHODS}
    assert names == {*SAME, *READ, *AGENTS}
    operations = {name for name, *_ in routes(furnished)}
    assert {*SAME.values()} <= operations
    # A method that reads has an action that reads.
    for servicer, method in METHODS:
        if method.name in READ:
            action = declared_for(getattr(servicer, method.name)).action
            assert action is None or action.endswith((".read", ".own", ".run", ".create")), method.name


def only(action: str) -> AuditEntry:
    (found,) = [entry for entry in entries() if entry.action == action]
    return found


def test_a_token_that_a_second_request_replaces_is_revoked_in_the_trail(principal: Principal) -> None:
    first, _ = tokens.create(principal, name="script", scopes=["read"], request_id="r")
    second, _ = tokens.create(principal, name="script", scopes=["read"], request_id="r")
    entry = only("token.revoke")
    assert (entry.target, entry.detail) == (f"token/{first.hint}", {"owner": "tester", "replaced": True})
    assert [token.pk for token in tokens.list_tokens(principal)] == [second.pk]


@pytest.mark.parametrize("way", ["revoke", "replace"])
def test_a_person_creates_tokens_at_a_bounded_rate(principal: Principal, settings: Any, way: str) -> None:
    settings.TRIMTAB_TOKENS_PER_HOUR = 5
    viewer = replace(principal, role=Role.VIEWER)
    for _ in range(5):
        token, _ = tokens.create(viewer, name="loop", scopes=["read"], request_id="r" if way == "replace" else "")
        if way == "revoke":
            tokens.revoke(viewer, str(token.pk))
    with pytest.raises(ResourceExhausted) as caught:
        tokens.create(viewer, name="loop", scopes=["read"])
    assert (caught.value.code, caught.value.retryable) == ("tokens_created_too_fast", True)
    # It is the person's own rate.
    tokens.create(replace(viewer, actor="other"), name="script", scopes=["read"])
    rows = access.rows(ApiToken, principal)
    assert rows.count() == 6
    # Revoked tokens do not stay: a later one finds none of them.
    rows.update(created_at=Now() - timedelta(hours=2))
    rows.filter(revoked_at__isnull=False).update(revoked_at=Now() - timedelta(hours=2))
    tokens.create(viewer, name="later", scopes=["read"])
    assert rows.filter(revoked_at__isnull=False).count() == 0


def test_refused_sign_ins_are_in_the_trail_at_a_bounded_rate(db: None) -> None:
    for _ in range(30):
        with pytest.raises(Unauthenticated):
            sign_ins.by_token("a.b.c", "", "192.0.2.7")
        with pytest.raises(Unauthenticated):
            sign_ins.by_code("wrong", "192.0.2.7")
    found = [entry for entry in entries() if entry.action == "login.refuse"]
    assert len(found) == sign_ins.MOST_REFUSED
    assert {(one.actor, one.address) for one in found} == {("unknown", "192.0.2.7")}
    assert {one.detail["code"] for one in found} == {"invalid_token", "invalid_login_code"}
    assert {one.tenant_id for one in found} == {administrator().tenant_id}
    for place in range(100):
        with pytest.raises(Unauthenticated):
            sign_ins.by_token("a.b.c", "", f"192.0.2.{place}")
    assert len([one for one in entries() if one.action == "login.refuse"]) <= sign_ins.MOST_REFUSED_BY_ALL


def test_the_trail_counts_the_refusals_that_it_left_out(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(sign_ins, "refused_from", Rate(2, 60.0, lambda: now[0]))
    for moment in (0.0, 1.0, 2.0, 3.0, 61.0):
        now[0] = moment
        with pytest.raises(Unauthenticated):
            sign_ins.by_token("a.b.c", "", "192.0.2.7")
    counts = [entry.detail.get("refused_before") for entry in entries() if entry.action == "login.refuse"]
    assert counts == [None, None, 2]


def test_the_attempt_with_a_programs_token_is_in_the_trail_of_its_tenant(principal: Principal) -> None:
    _, text = tokens.create(principal, name="script", scopes=["read"])
    with pytest.raises(Exception, match="for programs"):
        sign_ins.by_token(text, "", "192.0.2.7")
    entry = only("login.refuse")
    assert (entry.tenant_id, entry.actor, entry.detail["code"]) == (
        principal.tenant_id, "tester", "not_a_persons_token",
    )  # fmt: skip
    assert text not in json.dumps(entry.detail)


def test_a_person_signs_in_at_a_bounded_rate(db: None) -> None:
    for _ in range(sign_ins.MOST_SIGN_INS):
        sign_ins.by_token("test-token", "", "192.0.2.7")
    with pytest.raises(ResourceExhausted):
        sign_ins.by_token("test-token", "", "192.0.2.7")
    assert len([one for one in entries() if one.action == "login.sign_in"]) == sign_ins.MOST_SIGN_INS


def test_the_next_token_of_a_session_is_no_new_sign_in(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    person = replace(principal, subject="id-1", credential="oidc:id-1")
    proof = Proof("id-1", "tester", "s-1", 2_000_000_000, 2_000_000_300)
    monkeypatch.setattr("service.identity.principals.identify", lambda *_: (person, proof))
    sign_ins.by_token("t", "", "192.0.2.7")
    assert only("login.sign_in").credential == "oidc:id-1"
    cookie = sessions.issue(person, proof)
    sign_ins.by_token("t", "", "192.0.2.7", cookie)
    assert only("login.sign_in")
    # The cookie of another session of the identity provider is another sign-in.
    other = sessions.issue(person, replace(proof, session="s-2"))
    sign_ins.by_token("t", "", "192.0.2.7", other)
    assert len([one for one in entries() if one.action == "login.sign_in"]) == 2


def test_a_disabled_tenant_opens_no_session(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    Tenant._default_manager.filter(pk=principal.tenant_id).update(disabled_at=Now())
    proof = Proof("id-1", "tester", "s-1", 2_000_000_000, 2_000_000_300)
    monkeypatch.setattr("service.identity.principals.identify", lambda *_: (principal, proof))
    with pytest.raises(Exception, match="disabled"):
        sign_ins.by_token("t", "", "192.0.2.7")
    assert only("login.refuse").detail["code"] == "tenant_disabled"
