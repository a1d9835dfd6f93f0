"""The rights of an API token after its owner's role was lowered."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from service.core.errors import Unauthenticated
from service.identity import memberships, principals, revocations, tokens
from service.identity.oidc import Identity, Proof
from service.tenancy import access, tenants
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal, Role
from tests.factories.domain import make_principal


class Person:
    """A person of the identity provider. Each further token is issued a second later."""

    def __init__(self) -> None:
        self.subject, self.name, self.second = uuid4().hex, f"p-{uuid4().hex[:8]}", 1_000_000_000

    def comes(self, *roles: tuple[Principal, Role], operator: bool = False, second: int | None = None) -> None:
        """Sign in with a token that states these roles."""
        self.second += 1
        proof = Proof(self.subject, self.name, "", second or self.second, 2 * self.second)
        reported = {tenants.slug_of(principal.tenant_id): role for principal, role in roles}
        memberships.note(Identity(proof, reported, operator=operator))

    def token(self, there: Principal, role: Role) -> str:
        """Create an API token with this role."""
        maker = replace(there, actor=self.name, role=role, credential="session", subject=self.subject)
        return tokens.create(maker, name="script", scopes=["admin"])[1]


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
