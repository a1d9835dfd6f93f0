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
    ReasonDataField,
    StateField,
)
from service.core.lifecycle import LeaseState, TrialState
from service.core.reasons import data_of


class InterferenceSerializer(serializers.Serializer[Any]):
    """The numbers that an agent measured of other processes during a trial, without those that it cannot measure."""

    share = serializers.FloatField(
        required=False, help_text="Part of the time of the trial's CPUs that other processes took."
    )
    wait = serializers.FloatField(
        required=False, help_text="Part of the running time in which the trial waited for a CPU because of them."
    )
    steal = serializers.FloatField(required=False, help_text="Part of its CPUs that other virtual machines took.")
    swapped = serializers.FloatField(required=False, help_text="Pages that the machine swapped in or out.")
    memory = serializers.FloatField(
        required=False, help_text="Part of the machine's memory that was available before the run."
    )
    unaffected = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Metrics that contain no waiting, such as CPU time."
    )


class TrialSerializer(serializers.Serializer[Any]):
    """A trial. Its identity is its study's name and its number."""

    number = serializers.IntegerField()
    state = StateField(TrialState)
    params = ConfigurationField(help_text="Values of the active parameters.")
    metrics = MetricsField(allow_null=True, help_text="For a pruned trial, the last known metrics.")
    breaks = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Outcome constraints that its metrics break; null: none, or the trial is not COMPLETED.",
    )
    reason = serializers.CharField()
    reason_data = ReasonDataField("reason")
    origin = serializers.ChoiceField(
        ["suggested", "replicate", "check", "default", "added", "enqueued", "earlier", "rollout"],
        help_text="replicate: a policy repeated the configuration; check: the final check; enqueued: by a user;"
        " earlier: it was among the best of an earlier study; rollout: a step of the roll-out of kept settings.",
    )
    repeat = serializers.CharField(help_text="Why it measures a configuration again; empty if it does not.")
    repeat_data = ReasonDataField("repeat")
    round = serializers.IntegerField(allow_null=True, help_text="Its round of the final check; null for other trials.")
    client_id = serializers.CharField()
    agent = serializers.CharField()
    node = serializers.CharField(help_text="Node of the last run; empty: it did not run on an agent.")
    doubt = serializers.CharField(help_text="Why the timing may be wrong; empty if there is no doubt.")
    interference = InterferenceSerializer(
        allow_null=True, help_text="Null if no agent has run it, or one of an earlier version."
    )
    machine = serializers.CharField(help_text="Processor, kernel and compiler; empty if they are unknown.")
    attempt = serializers.IntegerField()
    seconds = serializers.FloatField(
        allow_null=True, help_text="Running time of the application, if the agent has reported it."
    )
    revision = serializers.IntegerField(help_text="Revision of the study at the last change of this trial.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, trial: Any) -> dict[str, Any]:
        """Return the columns unchanged, since JSON has a form for each. Separate fields would take seconds for
        thousands of trials."""
        found = {name: getattr(trial, name) for name in TRIAL_FIELDS if name != "repeat_data"}
        repeat = "" if trial.repeat is None else trial.repeat["text"]
        data = {"reason_data": data_of(trial.reason, trial.reason_data), "repeat_data": data_of(repeat, trial.repeat)}
        return found | {"repeat": repeat} | data


TRIAL_FIELDS = tuple(TrialSerializer().fields)


class MeasurementSerializer(serializers.Serializer[Any]):
    """Metric values at one step of a trial."""

    step = serializers.IntegerField()
    metrics = MetricsField()
    elapsed_seconds = serializers.FloatField(allow_null=True)


class CommandSerializer(serializers.Serializer[Any]):
    """A program that an agent runs for a trial."""

    step = serializers.CharField(help_text="build, header or command (the application).")
    argv = serializers.ListField(child=serializers.CharField())
    environment = serializers.DictField(
        child=serializers.CharField(),
        help_text="Variables of component and trial, in addition to the environment of the agent.",
    )


class InvocationSerializer(serializers.Serializer[Any]):
    """The commands for a configuration, as the agent reports them. Secrets are hidden (***), long texts shortened."""

    commands = CommandSerializer(many=True)
    folder = serializers.CharField(help_text="Working directory of the application.")
    host = serializers.CharField(help_text="Machine of the agent.")
    script = serializers.CharField(help_text="Batch script for the cluster; empty: there is none.")
    scheduler_options = serializers.ListField(child=serializers.CharField())


class ArtifactSerializer(serializers.Serializer[Any]):
    """A file of a trial that was uploaded."""

    id = serializers.IntegerField()
    name = serializers.CharField(help_text="Path below the work folder of the trial.")
    size = serializers.IntegerField()
    sha256 = serializers.CharField(help_text="Hexadecimal; empty if the content is not stored.")
    left_out = serializers.CharField(help_text="Why the content is not stored; empty: it is stored.")
    attempt = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class LeaseSerializer(serializers.Serializer[Any]):
    """One run of a trial on an agent."""

    agent = serializers.CharField(source="agent.name")
    agent_id = serializers.CharField(source="agent.agent_id")
    agent_version = serializers.CharField(source="agent.version")
    labels = ObjectField(source="agent.labels", help_text="Labels of the agent at its last registration.")
    node = serializers.CharField(help_text="Node of the run; empty: it did not start.")
    attempt = serializers.IntegerField()
    state = StateField(LeaseState)
    outcome = serializers.CharField(
        help_text="Outcome that the agent reported; empty while the lease is held, or if it expired."
    )
    reason = serializers.CharField()
    granted_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    settled_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField()
    run = serializers.IntegerField(
        help_text="Increases when the job is started again; 0: the agent does not count runs."
    )
    invocation = InvocationSerializer(
        allow_null=True, help_text="Commands of the run; null: it has not started, or the agent does not report them."
    )


class TrialDetailSerializer(TrialSerializer):
    """A trial with its measurements, log, leases and artifacts."""

    measurements = MeasurementSerializer(many=True)
    log = serializers.CharField(help_text="End of the log.")
    leases = LeaseSerializer(many=True, help_text="Runs on agents, oldest first.")
    artifacts = ArtifactSerializer(many=True, help_text="Uploaded files.")


class LogEventSerializer(serializers.Serializer[Any]):
    """The data of a server-sent event `log`."""

    text = serializers.CharField()
    reset = serializers.BooleanField(help_text="True if the text replaces the text before; else it continues it.")


class TrialListSerializer(serializers.Serializer[Any]):
    """A page of trials, by number; or by revision with `after_revision`."""

    trials = TrialSerializer(many=True)
    next_page_token = serializers.CharField(help_text="Empty on the last page, and with after_revision.")
    revision = serializers.IntegerField(
        allow_null=True, help_text="With after_revision: the value for the next request. Else null."
    )
    more = serializers.BooleanField(help_text="True if there is another page.")


class BestTrialsSerializer(serializers.Serializer[Any]):
    """The first trial of the best configuration; with several objectives, of each configuration in the Pareto set."""

    trials = TrialSerializer(many=True)


class TrialQuery(PageQuery):
    """A filter of trials."""

    state = serializers.ListField(child=StateField(TrialState), required=False, default=list)
    client_id = serializers.CharField(required=False, default="", allow_blank=True)
    newest_first = serializers.BooleanField(required=False, default=False)
    after_revision = serializers.IntegerField(
        required=False, default=None, help_text="Only trials changed after this revision. It excludes other filters."
    )


class AddTrialSerializer(Input):
    """A trial that the user measured, or that did not work."""

    params = ConfigurationField()
    metrics = MetricsField(required=False, default=dict, help_text="Values of all objectives; none unless COMPLETED.")
    state = serializers.ChoiceField(
        choices=["COMPLETED", "INFEASIBLE", "FAILED", "PRUNED"],
        required=False,
        default="COMPLETED",
        help_text="INFEASIBLE: the configuration cannot work; FAILED: the machine was at fault; PRUNED: stopped early.",
    )
    reason = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Why the trial is INFEASIBLE, FAILED or PRUNED."
    )
    request_id = serializers.CharField(required=False, default="", allow_blank=True)


class EnqueueTrialsSerializer(Input):
    """A configuration that is measured before the algorithm suggests others.

    Active parameters that are left out take their defaults.
    """

    params = ConfigurationField()
    count = serializers.IntegerField(required=False, default=1, help_text="Number of trials, 1 to 1000.")
    request_id = serializers.CharField(required=False, default="", allow_blank=True)


class StandingSerializer(serializers.Serializer[Any]):
    """The reason why a study with waiting trials and no running one waits."""

    reason = serializers.CharField(
        help_text='"Waits for its turn: node-a is busy with gcc. It is third in the queue."; empty: it does not wait.'
    )
    reason_data = ReasonDataField("reason")
    place = serializers.IntegerField(
        allow_null=True,
        help_text="Place among the studies that wait for the same agents, from 1; null: no online agent fits, or one"
        " is free.",
    )


class EnqueuedTrialsSerializer(serializers.Serializer[Any]):
    """The trials that were enqueued."""

    trials = TrialSerializer(many=True)


class CompleteTrialSerializer(Input):
    """The final metrics of a trial."""

    metrics = MetricsField()


class ResultSerializer(CompleteTrialSerializer):
    """The final metrics of one of several trials."""

    trial = serializers.IntegerField(help_text="The number of the trial.")


class CompleteTrialsSerializer(Input):
    """The results of several trials."""

    results = ResultSerializer(many=True, help_text="1 to 1000 results of different trials.")


class CompletedTrialsSerializer(serializers.Serializer[Any]):
    """The trials, in the order of the results."""

    trials = TrialSerializer(many=True)


class FailTrialSerializer(Input):
    """The reason why a trial has no result."""

    infeasible = serializers.BooleanField(
        help_text="True if the configuration cannot work; false if the machine failed."
    )
    reason = serializers.CharField(required=False, default="", allow_blank=True)


class StopTrialSerializer(Input):
    """The reason why a trial is ended early."""

    reason = serializers.CharField(required=False, default="", allow_blank=True)


class ReplaceParamsSerializer(Input):
    """The configuration that a trial really has."""

    params = ConfigurationField(help_text="Values of the active parameters. Optional ones may be missing.")


class ReportMeasurementSerializer(Input):
    """Metric values at one step."""

    step = serializers.IntegerField()
    metrics = MetricsField()
    elapsed_seconds = serializers.FloatField(required=False, default=None, allow_null=True)
