"""Principals: the callers of the service."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

# The short name of a tenant.
SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SLUG_FORM = "1 to 63 of a-z, 0-9 and -, the first and the last no -"


class Role(StrEnum):
    """The role of a caller. The first three are roles in a tenant; permissions.py says what each may do."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"
    # The operator of the installation creates, limits and removes tenants.
    OPERATOR = "operator"
    # An agent, which runs trials and sees nothing else.
    AGENT = "agent"


class Scope(StrEnum):
    """The limits of an API token, within what its owner's role may do."""

    READ = "read"
    TUNE = "tune"
    AGENT = "agent"
    ADMIN = "admin"


ALL_SCOPES = frozenset(Scope)
# The tenant of an operator who is a member of none: no row has it.
NO_TENANT = 0
# How the `credential` of an agent begins that has enrolled.
ENROLLED = "agent:"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller, as far as the domain needs to know it.

    `actor` is who it is, `credential` by which means that is known (`session`, `token:trm_ab12`) and `address` from
    where the call came: the audit trail shows all three. `study` is the name of the only study that an API token is
    good for; None stands for all of them. `study_uid` is the identity of the only study that the present call may reach
    by a name; empty: any. `subject` is the identity provider's identifier of the person, if it has one.
    """

    tenant_id: int
    actor: str
    role: Role
    scopes: frozenset[Scope] = ALL_SCOPES
    study: str | None = None
    study_uid: str = ""
    credential: str = ""
    address: str = ""
    subject: str = ""

    @property
    def is_enrolled(self) -> bool:
        """True for an agent with a credential of its own (`identity/enrolment.py`)."""
        return self.credential.startswith(ENROLLED)

    @classmethod
    def system(cls, tenant_id: int) -> Principal:
        """Return the principal of the service itself for the rows of one tenant (sweeps, workers)."""
        return cls(tenant_id=tenant_id, actor="system", role=Role.ADMIN, credential="service")
