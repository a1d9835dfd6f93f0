"""Component files that users write in the console."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import models
from django.db.models.functions import Now

from service.tenancy.models import TenantOwned

if TYPE_CHECKING:
    from service.fleet.models.agent import Agent


class ComponentFile(TenantOwned):
    """One version of a component file, which never changes.

    Administrators of clusters fetch it; the service sends it nowhere.
    """

    name = models.CharField(max_length=63)
    # The version: 1, 2, ... for each name.
    number = models.PositiveIntegerField()
    text = models.TextField()
    # The hexadecimal digest of the text.
    sha256 = models.CharField(max_length=64)
    author = models.CharField(max_length=200)
    written_at = models.DateTimeField(db_default=Now())
    # Not a column. The agents that offer the component; selectors set it.
    agents: Sequence[Agent]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name", "number"], name="component_file_version")]

    def __str__(self) -> str:
        return f"{self.name}/{self.number}"
