"""Ledgers: for each tenant a counter of changes, one of jobs, and whether its records need approval."""

from __future__ import annotations

from django.db import models

from service.tenancy.models import TenantOwned


class Ledger(TenantOwned):
    """The revision of a tenant's records and settings, and the number of its reported jobs.

    A change locks the row until it is committed. Revisions therefore become visible in their order, so that a reader
    who has revision r misses nothing if it reads what is later than r.
    """

    revision = models.BigIntegerField(default=0)
    jobs = models.BigIntegerField(default=0)
    # Whether an administrator has to approve a record before jobs of other users than its own get its settings.
    approval = models.BooleanField(default=True, db_default=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="ledger_of_tenant")]

    def __str__(self) -> str:
        return f"revision {self.revision}"
