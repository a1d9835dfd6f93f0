"""The rights of an API token after its owner's role was lowered."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import F

from service.core.errors import Unauthenticated
from service.identity import memberships, principals, revocations, tokens
from service.identity.models import ApiToken, Membership
from service.identity.oidc import Identity, Proof
from service.tenancy import access, tenants
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal, Role
from tests.factories.domain import make_principal


class Person:
    """A person of the identity provider. Each further token is issued a second later."""

    def __init__(self) -> None:
        self.subject, self.name, self.second = uuid4().hex, f"p-{uuid4().hex[:8]}", int(time.time()) - 1000

    def comes(self, *roles: tuple[Principal, Role], operator: bool = False, second: int | None = None) -> None:
        """Sign in with a token that states these roles."""
        self.second += 1
        proof = Proof(self.subject, self.name, "", second or self.second, 2 * self.second)
        reported = {tenants.slug_of(principal.tenant_id): role for principal, role in roles}
        memberships.note(Identity(proof, reported, operator=operator))

    def token(self, there: Principal, role: Role) -> str:
        """Create an API token with this role."""
        maker = replace(as_owner(self, there), role=role)
        return tokens.create(maker, name="script", scopes=["admin"])[1]


def as_owner(person: Person, there: Principal) -> Principal:
    return replace(there, actor=person.name, credential="session", subject=person.subject)


@pytest.fixture
def person() -> Person:
    return Person()


def role_of(token: str) -> Role:
    return principals.authenticate_bearer(token).role


@pytest.mark.parametrize(
    ("made", "reported", "left"),
    [
        (Role.ADMIN, Role.MEMBER, Role.MEMBER),
        (Role.ADMIN, Role.VIEWER, Role.VIEWER),
        (Role.OPERATOR, Role.ADMIN, Role.ADMIN),
        (Role.MEMBER, Role.ADMIN, Role.MEMBER),
        (Role.VIEWER, Role.VIEWER, Role.VIEWER),
    ],
)
def test_the_lower_role_counts(principal: Principal, person: Person, made: Role, reported: Role, left: Role) -> None:
    token = person.token(principal, made)
    assert role_of(token) == made
    person.comes((principal, reported))
    assert role_of(token) == left


def test_an_operators_token_works_while_the_owner_is_an_operator(principal: Principal, person: Person) -> None:
    token = person.token(principal, Role.OPERATOR)
    person.comes((principal, Role.VIEWER), operator=True)
    assert role_of(token) == Role.OPERATOR
    person.comes((principal, Role.VIEWER))
    assert role_of(token) == Role.VIEWER


def test_a_former_member_has_no_token(principal: Principal, person: Person) -> None:
    elsewhere = make_principal()
    person.comes((principal, Role.ADMIN), (elsewhere, Role.MEMBER))
    here, there = person.token(principal, Role.ADMIN), person.token(elsewhere, Role.MEMBER)
    person.comes((elsewhere, Role.MEMBER))
    assert [one.name for one in memberships.members(elsewhere)] == [person.name]
    assert memberships.members(principal) == []
    with pytest.raises(Unauthenticated) as caught:
        role_of(here)
    assert caught.value.code == "owner_left"
    assert role_of(there) == Role.MEMBER
    person.comes((principal, Role.VIEWER), (elsewhere, Role.MEMBER))
    assert role_of(here) == Role.VIEWER
    trail = access.rows(AuditEntry, principal).filter(action="member.change").order_by("id")
    assert list(trail.values_list("target", "before", "after")) == [
        (f"person/{person.name}", None, {"role": "admin"}),
        (f"person/{person.name}", {"role": "admin"}, {"role": ""}),
        (f"person/{person.name}", {"role": ""}, {"role": "viewer"}),
    ]


def test_an_older_valid_token_does_not_raise_the_role(principal: Principal, person: Person) -> None:
    token = person.token(principal, Role.ADMIN)
    before = person.second + 1
    person.second += 10
    person.comes((principal, Role.VIEWER))
    person.comes((principal, Role.ADMIN), second=before)
    assert role_of(token) == Role.VIEWER


def test_other_people_and_unknown_tenants_do_not_change_a_role(principal: Principal, person: Person) -> None:
    token = person.token(principal, Role.ADMIN)
    Person().comes((principal, Role.VIEWER))
    memberships.note(Identity(Proof(person.subject, person.name, "", 1, 2), {"no-such": Role.VIEWER}, operator=False))
    assert role_of(token) == Role.ADMIN


def test_revocation_by_identifier_also_revokes_tokens(principal: Principal, person: Person) -> None:
    token = person.token(principal, Role.MEMBER)
    assert revocations.revoke_person(principal, person.subject) == 1
    with pytest.raises(Unauthenticated):
        role_of(token)


def put_back(person: Person, there: Principal, days: float) -> None:
    """Make it so many days longer since the person signed in and created tokens."""
    gone = timedelta(days=days)
    with access.work(there):
        access.rows(Membership, there).filter(subject=person.subject).update(as_of=F("as_of") - gone)
        access.rows(ApiToken, there).filter(subject=person.subject).update(created_at=F("created_at") - gone)


def test_tokens_are_suspended_while_their_owner_is_away(principal: Principal, person: Person, settings: Any) -> None:
    settings.TRIMTAB_OWNER_ABSENCE_DAYS = 90
    person.comes((principal, Role.ADMIN))
    token = person.token(principal, Role.ADMIN)
    put_back(person, principal, 89)
    assert role_of(token) == Role.ADMIN
    [listed] = tokens.list_tokens(as_owner(person, principal))
    assert listed.sign_in_by is not None
    assert timedelta(0) < listed.sign_in_by - datetime.now(UTC) < timedelta(days=1)

    put_back(person, principal, 2)
    for _ in range(3):
        with pytest.raises(Unauthenticated, match="not signed in for 90 days") as caught:
            role_of(token)
        assert caught.value.code == "owner_absent"
    [listed] = tokens.list_tokens(as_owner(person, principal))
    assert listed.sign_in_by is not None
    assert listed.sign_in_by < datetime.now(UTC)
    # The next sign-in ends it, with the present role.
    person.comes((principal, Role.VIEWER))
    assert role_of(token) == Role.VIEWER
    put_back(person, principal, 91)
    with access.work(principal):
        access.rows(ApiToken, principal).update(suspended_at=F("suspended_at") - timedelta(days=91, seconds=2000))
    with pytest.raises(Unauthenticated):
        role_of(token)
    trail = access.rows(AuditEntry, principal).filter(action="token.suspend")
    assert [(entry.target, entry.detail["owner"]) for entry in trail] == [(f"token/{listed.hint}", person.name)] * 2


def test_an_operator_can_switch_the_suspension_off(principal: Principal, person: Person, settings: Any) -> None:
    settings.TRIMTAB_OWNER_ABSENCE_DAYS = 0
    person.comes((principal, Role.ADMIN))
    token = person.token(principal, Role.ADMIN)
    put_back(person, principal, 10_000)
    assert role_of(token) == Role.ADMIN
    [listed] = tokens.list_tokens(as_owner(person, principal))
    assert listed.sign_in_by is None


def test_tokens_of_the_local_administrator_need_no_sign_in(principal: Principal) -> None:
    _, token = tokens.create(principal, name="script", scopes=["admin"])
    with access.work(principal):
        access.rows(ApiToken, principal).update(created_at=F("created_at") - timedelta(days=10_000))
    assert role_of(token) == principal.role
    assert [one.sign_in_by for one in tokens.list_tokens(principal)] == [None]
