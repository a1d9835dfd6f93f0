"""Who is calling, and API tokens."""

from dataclasses import dataclass
from datetime import datetime


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
