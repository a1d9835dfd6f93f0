"""The columns that records and reported jobs share: what is known of a job when it is submitted."""

from __future__ import annotations

from django.db import models

from service.studies.job_metadata import LONGEST_COMMAND, LONGEST_NAME
from service.tenancy.models import TenantOwned


class JobColumns(TenantOwned):
    """A job as it was submitted."""

    user = models.CharField(max_length=LONGEST_NAME, blank=True)
    name = models.CharField(max_length=LONGEST_NAME, blank=True)
    program = models.CharField(max_length=LONGEST_NAME, blank=True)
    command_line = models.CharField(max_length=LONGEST_COMMAND, blank=True)
    submitted_at = models.DateTimeField()
    nodes = models.PositiveIntegerField()

    class Meta:
        abstract = True
