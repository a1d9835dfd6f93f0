"""Find the tenant of a secret: the only query that runs before the tenant is known."""

from __future__ import annotations

from service.tenancy import access


def tenant_of(digest: str) -> int | None:
    """Return the tenant of the API token, agent's credential, enrolment or login code with this hash, or None.

    The secret may have expired; the caller checks that within the tenant.
    """
    found = access.across("tenant_of_secret", digest)
    return int(found[0][0]) if found else None
