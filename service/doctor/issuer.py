"""The identity provider. Needs Django's settings."""

from __future__ import annotations

from django.conf import settings

from service.doctor.findings import Deployment, Finding, ok, problem
from service.identity import keys


def answers(deployment: Deployment) -> Finding:
    """Check that the provider's keys can be fetched, without which nobody can sign in."""
    issuer = settings.TRIMTAB_OIDC_ISSUER
    if not issuer:
        return ok("no identity provider is configured: the administrator's token is the way in")
    try:
        count = len(keys.fetch(issuer, settings.TRIMTAB_OIDC_JWKS_URL))
    except (OSError, ValueError) as error:
        place = settings.TRIMTAB_OIDC_JWKS_URL or issuer
        return problem(
            f"the keys of {place} cannot be fetched: {getattr(error, 'reason', error)}",
            "start Keycloak, or correct TRIMTAB_OIDC_ISSUER (exactly as its tokens name it) or TRIMTAB_OIDC_JWKS_URL",
        )
    return ok(f"{issuer} answers with {count} keys")
