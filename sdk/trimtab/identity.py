"""Who is calling, API tokens, and the audit trail."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trimtab.errors import JsonValue


@dataclass(frozen=True)
class Identity:
    """Who the service takes the caller for."""

    actor: str
    tenant: str
    """Empty for an operator who is a member of none."""
    role: str
    scopes: tuple[str, ...]
    study: str | None
    """The only study that the token is good for."""
    credential: str


@dataclass(frozen=True)
class ApiToken:
    """A token for scripts, without its secret."""

    id: str
    name: str
    hint: str
    """How the secret begins."""
    owner: str
    role: str
    scopes: tuple[str, ...]
    study: str | None
    created_at: datetime | None
    expires_at: datetime | None
    last_used_at: datetime | None
    """To the minute."""


@dataclass(frozen=True)
class AuditEntry:
    """One change: who made it, by which credential, from where, and how things were before and after."""

    id: int
    at: datetime | None
    actor: str
    credential: str
    address: str
    action: str
    """What was done, as in "trial.complete"."""
    target: str
    """To what, as in "study/gcc/trial/3"."""
    detail: Mapping[str, JsonValue]
    before: Mapping[str, JsonValue] | None
    """What was changed, as it was; None where there was nothing."""
    after: Mapping[str, JsonValue] | None
