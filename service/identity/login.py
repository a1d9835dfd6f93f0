"""One-time login codes for the console."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import timedelta

from django.db.models.functions import Now

from service.core.errors import Unauthenticated
from service.identity import secret
from service.identity.lookup import tenant_of
from service.identity.models import LoginCode
from service.identity.principals import administrator
from service.tenancy import access, audit
from service.tenancy.principal import Principal

LIFETIME = timedelta(minutes=15)


def create_code() -> str:
    """Create a code for the administrator, valid for one login within 15 minutes."""
    code = secrets.token_urlsafe(24)
    principal = administrator()
    with access.work(principal):
        access.rows(LoginCode, principal).filter(expires_at__lt=Now()).delete()
        access.add(
            principal,
            LoginCode(digest=secret.digest(code), actor=principal.actor, expires_at=Now() + LIFETIME),
        )
        audit.record(principal, "login.create_code", principal.actor)
    return code


def redeem(code: str, address: str = "") -> Principal:
    """Return the principal of an unused code and mark the code as used. Raises Unauthenticated."""
    digest = secret.digest(code)
    tenant = tenant_of(digest)
    if tenant is not None:
        principal = replace(administrator(), tenant_id=tenant, credential="login-code", address=address)
        with access.work(principal):
            unused = access.rows(LoginCode, principal).filter(digest=digest, used_at=None, expires_at__gt=Now())
            # The update decides between two calls that redeem the code at the same time.
            if unused.update(used_at=Now()):
                audit.record(principal, "login.redeem_code", principal.actor)
                return principal
    raise Unauthenticated("invalid_login_code", "The login link was used or has expired. Create a new one.")
