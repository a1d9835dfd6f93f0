"""The caller's identity, API tokens and the audit trail."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trimtab.errors import JsonValue


@dataclass(frozen=True)
class Identity:
    """The caller as the service knows it."""

    actor: str
    tenant: str
    """Empty for an operator who belongs to no tenant."""
    role: str
    scopes: tuple[str, ...]
    study: str | None
    """The only study that the token gives access to; None: all studies."""
    credential: str


@dataclass(frozen=True)
class ApiToken:
    """A token for scripts, without its secret."""

    id: str
    name: str
    hint: str
    """The first characters of the secret."""
    owner: str
    role: str
    scopes: tuple[str, ...]
    study: str | None
    created_at: datetime | None
    expires_at: datetime | None
    last_used_at: datetime | None
    """Accurate to one minute."""
    sign_in_by: datetime | None = None
    """Until when the owner must sign in. From then on the token is suspended until the owner does; None: no limit."""


@dataclass(frozen=True)
class AuditEntry:
    """One change: its author, credential and network address, and the values before and after it."""

    id: int
    at: datetime | None
    actor: str
    credential: str
    address: str
    action: str
    """For example "trial.complete"."""
    target: str
    """The changed object, for example "study/gcc/trial/3"."""
    detail: Mapping[str, JsonValue]
    before: Mapping[str, JsonValue] | None
    """The changed values before the change; None if the object is new."""
    after: Mapping[str, JsonValue] | None
