"""Studies. Counters on the row save asks and tells from reading the trials."""

from __future__ import annotations

from uuid import uuid4

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now

from service.core.lifecycle import StudyState
from service.core.reasons import stored
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class Study(TenantOwned):
    """One search for good configurations.

    Its row lock orders all changes of the study and of its trials. Each change raises `revision` and stamps the trials
    it touched with it, so "what changed after revision r" is a range of an index, without gaps. `spec` changes only
    with `space_version`: an extended budget is in `budget`.
    """

    name = models.CharField(max_length=63)
    # The identity: a study that gets the name of a deleted one has another.
    uid = models.UUIDField(default=uuid4, db_default=RandomUUID(), editable=False)
    spec = ExactJSONField()
    # Each change of the space increases it. Tuners then learn again from the trials that count in the new space.
    space_version = models.PositiveIntegerField(default=1, db_default=1)
    # The space that the study was created with, as core Space JSON; null while it is the space of the spec.
    first_space = ExactJSONField(null=True)
    # {"max_trials", "max_seconds", "max_node_hours"}; null: as in the spec.
    budget = ExactJSONField(null=True)
    request_id = models.CharField(max_length=100, null=True)  # noqa: DJ001 - unique, unless there is none
    created_at = models.DateTimeField(db_default=Now())

    # Copied from the spec for queries across studies; empty and null for ask/tell studies.
    component = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=64, blank=True)
    application = models.CharField(max_length=200, blank=True)
    parallelism = models.PositiveIntegerField(null=True)
    # The actor who created the study, and tags by which people find it.
    owner = models.CharField(max_length=200, blank=True, default="", db_default="")
    # Whether the actor could approve records: then the study's own needs no further approval.
    by_administrator = models.BooleanField(default=False, db_default=False)
    # Whether the service itself measures it (planning/sample_data.py).
    sample = models.BooleanField(default=False, db_default=False)
    # Whether a suggestion has needed more CPU than the quick workers give. The workers for slow operations compute it.
    slow = models.BooleanField(default=False, db_default=False)
    tags = ArrayField(models.CharField(max_length=50), default=list, db_default=[])

    state = models.CharField(max_length=16, default=StudyState.ACTIVE.value)
    state_reason = models.TextField(blank=True)
    # What `reasons.stored` returns for it. Written together with it, by `explain`.
    state_reason_data = ExactJSONField(null=True)
    # The same for the reason of the spec's "algorithm_choice", which earlier versions read with exactly their keys.
    choice_reason_data = ExactJSONField(null=True)
    revision = models.BigIntegerField(default=0)
    next_number = models.PositiveIntegerField(default=1)
    # Position in the algorithm's own sequence.
    cursor = models.BigIntegerField(default=0)
    requested_count = models.PositiveIntegerField(default=0)
    active_count = models.PositiveIntegerField(default=0)
    finished_count = models.PositiveIntegerField(default=0)
    # Trials that do not count against the budget: finished trials that users added, trials that a change of the space
    # removed before they ran, and trials of an earlier final check.
    added_count = models.PositiveIntegerField(default=0)
    # The trials of final checks before the present one.
    earlier_checks = models.PositiveIntegerField(default=0, db_default=0)
    default_done = models.BooleanField(default=False)
    exhausted = models.BooleanField(default=False)
    # When the time budget is over; null before the first trial and without such a budget.
    deadline = models.DateTimeField(null=True)
    # Null unless the study was given more budget after its end: the time from which its time budget counts, which is
    # the begin of its search plus the time between the end and the new budget.
    searching_since = models.DateTimeField(null=True)
    last_granted_at = models.DateTimeField(null=True)
    # Null unless a stopping rule has had a reason to end the search, which goes on with repeats alone until then:
    # {"reason", "reason_data", "after": the number of the last trial before them}.
    closing = ExactJSONField(null=True)
    # Null until the search is over and a final check begins:
    # {"reason": why the search ended, "best": the configuration to check or null until it is known (with several
    # objectives a list of configurations, members of the Pareto set), "trials": how many,
    # "after": the number of the last trial before it, "default": the median of the default's values, once the check is
    # over, "effects": the state of tuner/elimination.py after a proven gain}. A check that was requested later also has
    # its "policy" and the "request_id".
    final_check = ExactJSONField(null=True)
    # Null until the final check is over: {"text", "gain", "low", "high", "trials"}, and with several objectives also
    # "confidence" and "members" (`ParetoVerdict.to_json`). While the study continues later, also the "best" and the
    # "default" of the check, which `final_check` holds no more.
    verdict = ExactJSONField(null=True)
    # What policies/rollout.py says of the roll-out of kept settings that goes on in a live study, and when its next
    # trial may begin; null if there is none.
    rollout = ExactJSONField(null=True)
    rollout_due = models.DateTimeField(null=True)
    # What the components of its agents say about injected delays and contention: [{"text", "parameter", "values"}],
    # where an empty parameter stands for all configurations. Null if they inject nothing.
    injected = ExactJSONField(null=True)
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="study_name"),
            models.UniqueConstraint(fields=["tenant", "request_id"], name="study_request"),
        ]
        # No index has a column that an ask or a tell changes, so that PostgreSQL updates the row in place (HOT).
        indexes = [
            models.Index(fields=["tenant"], name="study_sample", condition=models.Q(sample=True)),
            models.Index(fields=["component", "state"], name="study_component", condition=~models.Q(component="")),
            models.Index(fields=["deadline"], name="study_deadline", condition=models.Q(deadline__isnull=False)),
            models.Index(fields=["rollout_due"], name="study_rollout", condition=models.Q(rollout_due__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name

    def explain(self, reason: str) -> None:
        """Set the reason of the state, with its code if it has one. The change that is under way writes both."""
        self.state_reason, self.state_reason_data = reason, stored(reason)

    @property
    def trial_count(self) -> int:
        """Return the number of all trials. Numbers have no gaps, and trials are never deleted."""
        return self.next_number - 1

    @property
    def open_count(self) -> int:
        """Return the number of trials without a final result."""
        return self.requested_count + self.active_count
