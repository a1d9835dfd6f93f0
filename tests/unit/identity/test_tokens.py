"""API tokens, credentials of agents, and the form of secrets."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from service.core.errors import Conflict, Forbidden, InvalidInput, NotFound, TrimtabError, Unauthenticated
from service.identity import enrolment, principals, secret, tokens
from service.identity.models import AgentCredential, ApiToken, Enrolment
from service.planning.create import create_study
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.permissions import Action, may
from service.tenancy.principal import Principal, Role, Scope
from tests.factories.domain import make_principal, make_spec, study_name


@pytest.fixture
def admin(principal: Principal) -> Principal:
    return replace(principal, actor="alice", role=Role.ADMIN, credential="oidc:1")


@pytest.fixture
def member(admin: Principal) -> Principal:
    return replace(admin, actor="mel", role=Role.MEMBER)


def code_of(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(TrimtabError) as caught:
        call(*arguments, **options)
    return caught.value.code


def test_the_form_of_secrets() -> None:
    made = {secret.create(kind) for kind in secret.Kind for _ in range(200)}
    assert len(made) == 600
    for text in made:
        assert secret.kind_of(text) == text[:4]
        assert len(text) == 50
        assert text[4:].isalnum()
        # A wrong, missing or swapped letter is noticed without a query.
        for wrong in (text[:-1], text + "a", text[:9] + ("a" if text[9] != "a" else "b") + text[10:], text.upper()):
            assert secret.kind_of(wrong) is None
    for other in ("", "trm_", "trx_" + text[4:], "trm_" + "0" * 46, "é" * 50):
        assert secret.kind_of(other) is None


def test_a_token_has_the_rights_of_its_owner_within_its_scopes(admin: Principal, member: Principal) -> None:
    _, text = tokens.create(member, name="script", scopes=["read"])
    found = principals.authenticate_bearer(text)
    assert (found.tenant_id, found.actor, found.role, found.scopes) == (
        member.tenant_id, "mel", Role.MEMBER, frozenset({Scope.READ}),
    )  # fmt: skip
    assert found.credential == f"token:{text[:8]}"
    assert may(found, Action.STUDY_READ)
    for action in (Action.STUDY_CREATE, Action.TOKEN_OWN, Action.AGENT_RUN):
        assert not may(found, action)
    _, agent = tokens.create(admin, name="agent", scopes=["agent"])
    assert may(principals.authenticate_bearer(agent), Action.AGENT_RUN)
    assert not may(principals.authenticate_bearer(agent), Action.STUDY_READ)


def test_a_token_cannot_do_more_than_its_creator(admin: Principal, member: Principal) -> None:
    viewer = replace(admin, actor="vera", role=Role.VIEWER)
    for who, scope in ((viewer, "tune"), (viewer, "agent"), (member, "agent"), (member, "owner"), (admin, "")):
        with pytest.raises(InvalidInput) as caught:
            tokens.create(who, name="t", scopes=[scope])
        assert caught.value.data["field"] == "scopes"
    assert code_of(tokens.create, admin, name="t", scopes=[]) == "invalid_argument"
    limited = replace(admin, scopes=frozenset({Scope.READ}))
    assert code_of(tokens.create, limited, name="t", scopes=["admin"]) == "invalid_argument"
    for days in (0, 367, -1):
        assert code_of(tokens.create, admin, name="t", scopes=["read"], days=days) == "invalid_argument"
    assert code_of(tokens.create, admin, name="", scopes=["read"]) == "invalid_argument"


def test_a_token_for_one_study(admin: Principal) -> None:
    study = study_name()
    create_study(admin, study, make_spec())
    _, text = tokens.create(admin, name="t", scopes=["tune"], study=study)
    found = principals.authenticate_bearer(text)
    assert may(found, Action.TRIAL_SUGGEST, study)
    assert not may(found, Action.TRIAL_SUGGEST, "another")
    assert not may(found, Action.STUDY_READ)
    assert code_of(tokens.create, admin, name="t", scopes=["tune"], study="no-such") == "study_not_found"


def test_a_token_ends_when_it_expires_or_is_revoked(admin: Principal, member: Principal) -> None:
    late, text = tokens.create(admin, name="t", scopes=["read"], days=1)
    rows = access.rows(ApiToken, admin)
    rows.filter(pk=late.pk).update(expires_at=Now() - timedelta(seconds=1))
    assert code_of(principals.authenticate_bearer, text) == "invalid_token"
    assert tokens.list_tokens(admin) == []

    mine, text = tokens.create(member, name="mine", scopes=["read"])
    others, other = tokens.create(admin, name="hers", scopes=["read"])
    assert [token.name for token in tokens.list_tokens(member)] == ["mine"]
    assert code_of(tokens.list_tokens, member, everyone=True) == "not_permitted"
    assert {token.name for token in tokens.list_tokens(admin, everyone=True)} == {"mine", "hers"}
    # A member revokes only own tokens, an administrator all tokens of the tenant, and a stranger sees none.
    assert code_of(tokens.revoke, member, str(others.pk)) == "not_permitted"
    stranger = replace(make_principal(), actor="mel", role=Role.ADMIN)
    for name in (str(mine.pk), mine.hint, "no-such"):
        with pytest.raises(NotFound):
            tokens.revoke(stranger, name)
    principals.authenticate_bearer(text)
    tokens.revoke(admin, mine.hint)
    assert code_of(principals.authenticate_bearer, text) == "invalid_token"
    assert code_of(tokens.revoke, admin, str(mine.pk)) == "token_not_found"
    principals.authenticate_bearer(other)
    actions = list(access.rows(AuditEntry, admin).order_by("id").values_list("action", flat=True))
    assert actions == ["token.create"] * 3 + ["token.revoke"]


def test_the_time_of_last_use_is_written_once_a_minute(admin: Principal) -> None:
    token, text = tokens.create(admin, name="t", scopes=["read"])
    rows = access.rows(ApiToken, admin)

    def used() -> Any:
        return rows.get(pk=token.pk).last_used_at

    assert used() is None
    principals.authenticate_bearer(text)
    first = used()
    assert first is not None
    principals.authenticate_bearer(text)
    assert used() == first
    rows.update(last_used_at=Now() - timedelta(seconds=61))
    before = used()
    principals.authenticate_bearer(text)
    assert used() > before


def test_a_repeated_creation_makes_one_token(admin: Principal) -> None:
    _, lost = tokens.create(admin, name="t", scopes=["read"], request_id="r")
    _, text = tokens.create(admin, name="t", scopes=["read"], request_id="r")
    assert len(tokens.list_tokens(admin)) == 1
    principals.authenticate_bearer(text)
    assert code_of(principals.authenticate_bearer, lost) == "invalid_token"


def drawn() -> tuple[str, str]:
    text = secret.create(secret.Kind.AGENT)
    return text, secret.digest(text)


def test_an_enrolment_is_valid_for_one_agent_once(admin: Principal) -> None:
    _, allowed = enrolment.create(admin)
    # It authenticates no other call.
    assert code_of(principals.authenticate_bearer, allowed) == "invalid_token"
    text, digest = drawn()
    assert code_of(principals.authenticate_bearer, text) == "invalid_credential"
    issued = enrolment.enrol(allowed, agent_id="a-1", credential_digest=digest)
    assert 0 < issued.renewal_seconds < issued.seconds
    found = principals.authenticate_bearer(text)
    assert (found.tenant_id, found.actor, found.role) == (admin.tenant_id, "agent/a-1", Role.AGENT)
    actions = {Action.SESSION_READ, Action.AGENT_RUN, Action.MATCH_READ, Action.MATCH_REPORT}
    assert {action for action in Action if may(found, action)} == actions
    # The answer was lost, and a repeated call gets the same answer.
    assert enrolment.enrol(allowed, agent_id="a-1", credential_digest=digest) == issued
    for agent_id, other in (("a-2", digest), ("a-1", drawn()[1])):
        assert code_of(enrolment.enrol, allowed, agent_id=agent_id, credential_digest=other) == "invalid_enrolment"
    principals.authenticate_bearer(text)


def test_an_expired_or_unknown_enrolment_is_refused(admin: Principal) -> None:
    _, allowed = enrolment.create(admin, minutes=1)
    access.rows(Enrolment, admin).update(expires_at=Now() - timedelta(seconds=1))
    digest = drawn()[1]
    _, token = tokens.create(admin, name="t", scopes=["agent"])
    for text in (allowed, secret.create(secret.Kind.ENROLMENT), token, "", "x" * 50):
        assert code_of(enrolment.enrol, text, agent_id="a", credential_digest=digest) == "invalid_enrolment"
    _, allowed = enrolment.create(admin)
    for wrong in ("", "0" * 63, "G" * 64, "0" * 65):
        assert code_of(enrolment.enrol, allowed, agent_id="a", credential_digest=wrong) == "invalid_argument"
    for minutes in (0, -1, enrolment.LONGEST_MINUTES + 1):
        assert code_of(enrolment.create, admin, minutes=minutes) == "invalid_argument"
    # An agent cannot take over another's credential by its hash.
    _, mine = drawn()
    enrolment.enrol(allowed, agent_id="a", credential_digest=mine)
    _, another = enrolment.create(admin)
    assert code_of(enrolment.enrol, another, agent_id="b", credential_digest=mine) == "invalid_argument"


def test_expired_secrets_are_removed_when_the_next_is_created(admin: Principal) -> None:
    made: tuple[tuple[Any, Any], ...] = (
        (ApiToken, lambda: tokens.create(admin, name="script", scopes=["read"])),
        (Enrolment, lambda: enrolment.create(admin)),
    )
    for model, create in made:
        for _ in range(3):
            create()
        kept, *ended = access.rows(model, admin).values_list("pk", flat=True)
        access.rows(model, admin).filter(pk__in=ended).update(expires_at=Now() - timedelta(days=1, seconds=1))
        create()
        left = set(access.rows(model, admin).values_list("pk", flat=True))
        assert len(left) == 2
        assert kept in left
        assert left.isdisjoint(ended)


def test_renewal_leaves_the_old_credential_until_its_end(admin: Principal) -> None:
    _, allowed = enrolment.create(admin)
    old, digest = drawn()
    enrolment.enrol(allowed, agent_id="a", credential_digest=digest)
    agent = principals.authenticate_bearer(old)
    new, following = drawn()
    issued = enrolment.renew(agent, agent_id="a", credential_digest=following)
    # The answer was lost. The agent repeats the call, or continues with the old credential.
    assert enrolment.renew(agent, agent_id="a", credential_digest=following) == issued
    for text in (old, new):
        assert principals.authenticate_bearer(text).actor == "agent/a"
    rows = access.rows(AgentCredential, admin)
    assert rows.count() == 2
    rows.filter(digest=digest).update(expires_at=Now() - timedelta(seconds=1))
    assert code_of(principals.authenticate_bearer, old) == "invalid_credential"
    # After many calls few credentials are kept, and the one of the call is among them.
    agent = principals.authenticate_bearer(new)
    for _ in range(10):
        last, digest = drawn()
        enrolment.renew(agent, agent_id="a", credential_digest=digest)
    assert rows.count() <= 3
    principals.authenticate_bearer(new)
    principals.authenticate_bearer(last)


def test_only_an_enrolled_agent_renews_and_only_for_itself(admin: Principal) -> None:
    _, allowed = enrolment.create(admin)
    text, digest = drawn()
    enrolment.enrol(allowed, agent_id="a", credential_digest=digest)
    agent = principals.authenticate_bearer(text)
    with pytest.raises(Forbidden) as caught:
        enrolment.renew(agent, agent_id="b", credential_digest=drawn()[1])
    assert caught.value.code == "another_agent"
    with pytest.raises(Conflict) as conflict:
        enrolment.renew(admin, agent_id="a", credential_digest=drawn()[1])
    assert conflict.value.code == "not_enrolled"


def test_an_agent_is_revoked_and_enrolled_again(admin: Principal) -> None:
    _, allowed = enrolment.create(admin)
    text, digest = drawn()
    enrolment.enrol(allowed, agent_id="a", credential_digest=digest)
    with pytest.raises(NotFound):
        enrolment.revoke(make_principal(), "a")
    enrolment.revoke(admin, "a")
    with pytest.raises(Unauthenticated):
        principals.authenticate_bearer(text)
    # Its old enrolment does not work either.
    assert code_of(enrolment.enrol, allowed, agent_id="a", credential_digest=digest) == "invalid_enrolment"
    assert code_of(enrolment.revoke, admin, "a") == "agent_not_enrolled"
    _, allowed = enrolment.create(admin)
    first, digest = drawn()
    enrolment.enrol(allowed, agent_id="a", credential_digest=digest)
    # Whoever has an enrolment token cannot take the place of an enrolled agent.
    _, allowed = enrolment.create(admin)
    second, digest = drawn()
    assert code_of(enrolment.enrol, allowed, agent_id="a", credential_digest=digest) == "agent_enrolled"
    principals.authenticate_bearer(first)
    # An agent that has lost its credential enrols again after an administrator has revoked it.
    enrolment.revoke(admin, "a")
    enrolment.enrol(allowed, agent_id="a", credential_digest=digest)
    assert code_of(principals.authenticate_bearer, first) == "invalid_credential"
    principals.authenticate_bearer(second)


def test_a_person_with_the_name_of_another_has_other_tokens(admin: Principal) -> None:
    made, _ = tokens.create(admin, name="t", scopes=["read"], request_id="r")
    namesake = replace(admin, role=Role.MEMBER, subject="another-person")
    assert tokens.list_tokens(namesake) == []
    tokens.create(namesake, name="t", scopes=["read"], request_id="s")
    with pytest.raises(Forbidden):
        tokens.revoke(namesake, str(made.pk))
    assert [token.pk for token in tokens.list_tokens(admin)] == [made.pk]
