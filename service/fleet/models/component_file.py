"""A component's file that somebody wrote in the service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import models
from django.db.models.functions import Now

from service.tenancy.models import TenantOwned

if TYPE_CHECKING:
    from service.fleet.models.agent import Agent


class ComponentFile(TenantOwned):
    """One version of it, which stays as it is. A cluster's administrator fetches it; the service sends it nowhere."""

    name = models.CharField(max_length=63)
    # Counts from 1 for each name.
    number = models.PositiveIntegerField()
    text = models.TextField()
    # Of the text, hexadecimal.
    sha256 = models.CharField(max_length=64)
    author = models.CharField(max_length=200)
    written_at = models.DateTimeField(db_default=Now())
    # Who offers it, where selectors read it; no column.
    agents: Sequence[Agent]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name", "number"], name="component_file_version")]

    def __str__(self) -> str:
        return f"{self.name}/{self.number}"
