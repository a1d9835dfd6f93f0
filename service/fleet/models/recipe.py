"""Recipes of components: how values reach a program."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.tenancy.models import TenantOwned


class Recipe(TenantOwned):
    """How the values of one version of a component reach its program (`trimtab_components.recipe`), as an agent has
    sent it. It stays when no agent offers the version any more, and the service sends it to no agent."""

    name = models.CharField(max_length=63)
    # The digest of the component with all its files.
    digest = models.CharField(max_length=64)
    text = models.TextField()
    sent_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name", "digest"], name="recipe_version")]

    def __str__(self) -> str:
        return f"{self.name}/{self.digest[:12]}"
