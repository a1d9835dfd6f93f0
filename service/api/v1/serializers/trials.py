"""Trials and their measurements."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import (
    ConfigurationField,
    Input,
    MetricsField,
    ObjectField,
    PageQuery,
    StateField,
)
from service.core.lifecycle import LeaseState, TrialState


class TrialSerializer(serializers.Serializer[Any]):
    """A trial. Its identity is its study's name and its number."""

    number = serializers.IntegerField()
    state = StateField(TrialState)
    params = ConfigurationField(help_text="Values of the active parameters.")
    metrics = MetricsField(allow_null=True, help_text="Of a pruned trial the last ones known.")
    reason = serializers.CharField()
    origin = serializers.ChoiceField(
        ["suggested", "replicate", "check", "default", "added", "enqueued", "earlier"],
        help_text="replicate: a policy had a configuration measured again; check: of the final check; enqueued: a user"
        " wanted it measured; earlier: it was among the best of an earlier study.",
    )
    client_id = serializers.CharField()
    agent = serializers.CharField()
    node = serializers.CharField(help_text="Where it runs or ran last; empty: not on an agent, or not yet.")
    attempt = serializers.IntegerField()
    seconds = serializers.FloatField(allow_null=True, help_text="Its own running time, where its agent has told it.")
    revision = serializers.IntegerField(help_text="The study's, as of this trial's last change.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, trial: Any) -> dict[str, Any]:
        """Its columns as they are: JSON has a form for each. Field by field, thousands of trials would take seconds."""
        return {name: getattr(trial, name) for name in TRIAL_FIELDS}


TRIAL_FIELDS = tuple(TrialSerializer().fields)


class MeasurementSerializer(serializers.Serializer[Any]):
    """Metric values at one step of a trial."""

    step = serializers.IntegerField()
    metrics = MetricsField()
    elapsed_seconds = serializers.FloatField(allow_null=True)


class CommandSerializer(serializers.Serializer[Any]):
    """A program that an agent runs for a trial."""

    step = serializers.CharField(help_text="build, header or command: the application's own.")
    argv = serializers.ListField(child=serializers.CharField())
    environment = serializers.DictField(
        child=serializers.CharField(), help_text="What component and trial set, beside what all programs there have."
    )


class InvocationSerializer(serializers.Serializer[Any]):
    """What an agent made of a configuration, as it says. Secrets are hidden (***), long texts shortened."""

    commands = CommandSerializer(many=True)
    folder = serializers.CharField(help_text="Where the application runs.")
    host = serializers.CharField(help_text="The agent's own machine.")
    script = serializers.CharField(help_text="The batch script that its cluster is given; empty: there is none.")
    scheduler_options = serializers.ListField(child=serializers.CharField())


class ArtifactSerializer(serializers.Serializer[Any]):
    """A file that a trial has left."""

    id = serializers.IntegerField()
    name = serializers.CharField(help_text="Its path below the trial's work folder.")
    size = serializers.IntegerField()
    sha256 = serializers.CharField(help_text="Hexadecimal; empty where its content is left out.")
    left_out = serializers.CharField(help_text="Why its content is not kept; empty: it is.")
    attempt = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class LeaseSerializer(serializers.Serializer[Any]):
    """One run of a trial on an agent."""

    agent = serializers.CharField(source="agent.name")
    agent_id = serializers.CharField(source="agent.agent_id")
    agent_version = serializers.CharField(source="agent.version")
    labels = ObjectField(
        source="agent.labels", help_text="What the agent says of its machine, as of its last registration."
    )
    node = serializers.CharField(help_text="Where it ran; empty: it never began.")
    attempt = serializers.IntegerField()
    state = StateField(LeaseState)
    outcome = serializers.CharField(help_text="As the agent settled it; empty while it is held or where it expired.")
    reason = serializers.CharField()
    granted_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    settled_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField()
    run = serializers.IntegerField(help_text="Grows when its job is started anew; 0: its agent does not count.")
    invocation = InvocationSerializer(
        allow_null=True, help_text="What is run; null: it has not begun, or its agent does not tell."
    )


class TrialDetailSerializer(TrialSerializer):
    """A trial with all that is known of it."""

    measurements = MeasurementSerializer(many=True)
    log = serializers.CharField(help_text="The end of what it printed.")
    leases = LeaseSerializer(many=True, help_text="Its runs on agents, the first one first.")
    artifacts = ArtifactSerializer(many=True, help_text="Files that it has left and its component names.")


class LogEventSerializer(serializers.Serializer[Any]):
    """The data of a server-sent event `log`."""

    text = serializers.CharField()
    reset = serializers.BooleanField(help_text="It stands for itself; else it follows what came before.")


class TrialListSerializer(serializers.Serializer[Any]):
    """A page of trials, by number; or by revision with `after_revision`."""

    trials = TrialSerializer(many=True)
    next_page_token = serializers.CharField(help_text="Empty on the last page, and with after_revision.")
    revision = serializers.IntegerField(
        allow_null=True, help_text="With after_revision: what to ask on from. Else null."
    )
    more = serializers.BooleanField(help_text="Whether there is another page.")


class BestTrialsSerializer(serializers.Serializer[Any]):
    """The trial that measured the best configuration first; with several objectives one for each of the Pareto set."""

    trials = TrialSerializer(many=True)


class TrialQuery(PageQuery):
    """Which trials."""

    state = serializers.ListField(child=StateField(TrialState), required=False, default=list)
    client_id = serializers.CharField(required=False, default="", allow_blank=True)
    newest_first = serializers.BooleanField(required=False, default=False)
    after_revision = serializers.IntegerField(
        required=False, default=None, help_text="Only what changed since; not together with other filters."
    )


class AddTrialSerializer(Input):
    """A configuration that the user measured."""

    params = ConfigurationField()
    metrics = MetricsField()
    request_id = serializers.CharField(required=False, default="", allow_blank=True)


class EnqueueTrialsSerializer(Input):
    """A configuration that is to be measured before anything else is suggested."""

    params = ConfigurationField()
    count = serializers.IntegerField(required=False, default=1, help_text="How many trials of it, 1 to 1000.")
    request_id = serializers.CharField(required=False, default="", allow_blank=True)


class EnqueuedTrialsSerializer(serializers.Serializer[Any]):
    """The trials that wait now."""

    trials = TrialSerializer(many=True)


class CompleteTrialSerializer(Input):
    """Final metrics."""

    metrics = MetricsField()


class FailTrialSerializer(Input):
    """Why there is no result."""

    infeasible = serializers.BooleanField(help_text="The configuration cannot work; else the machine failed it.")
    reason = serializers.CharField(required=False, default="", allow_blank=True)


class StopTrialSerializer(Input):
    """Why a trial is ended early."""

    reason = serializers.CharField(required=False, default="", allow_blank=True)


class ReportMeasurementSerializer(Input):
    """Metric values at one step."""

    step = serializers.IntegerField()
    metrics = MetricsField()
    elapsed_seconds = serializers.FloatField(required=False, default=None, allow_null=True)
