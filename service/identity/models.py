"""Login codes: what the link that `trimtab-service up` prints is good for."""

from __future__ import annotations

from django.db import models

from service.tenancy.models import TenantOwned


class LoginCode(TenantOwned):
    """A code that opens one console session. Only its hash is kept."""

    digest = models.CharField(max_length=64, unique=True)
    actor = models.CharField(max_length=200)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
