"""On whose behalf something is done."""

from __future__ import annotations

from dataclasses import dataclass

ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller, as far as the domain needs to know it.

    `actor` is what the audit trail shows; `scopes` say what the caller may do in its tenant.
    """

    tenant_id: int
    actor: str
    scopes: frozenset[str] = frozenset()

    @classmethod
    def system(cls, tenant_id: int) -> Principal:
        """The service itself, at work on rows of one tenant (sweeps, workers)."""
        return cls(tenant_id=tenant_id, actor="system", scopes=frozenset({ADMIN}))
