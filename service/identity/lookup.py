"""Whose a secret is: the one question that is asked before the tenant is known."""

from __future__ import annotations

from service.tenancy import access


def tenant_of(digest: str) -> int | None:
    """The tenant of the API token, agent's credential, enrolment or login code with this hash, if there is one.

    Says nothing about whether it still counts: that is asked within the tenant.
    """
    found = access.across("tenant_of_secret", digest)
    return int(found[0][0]) if found else None
