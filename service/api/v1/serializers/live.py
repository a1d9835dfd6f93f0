"""Live studies: what is in force, plans, budgets, results with their coins."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import (
    ConfigurationField,
    Input,
    MetricsField,
    ObjectField,
    ReasonDataField,
    ReasonDataSerializer,
)
from service.core.lifecycle import StudyState, TrialState
from service.core.live_instances import STATES


class LivePlanSerializer(serializers.Serializer[Any]):
    """The plan of a trial that waits or runs."""

    trial = serializers.IntegerField()
    trial_state = serializers.ChoiceField([one.value for one in TrialState])
    state = serializers.CharField(help_text="PLANNED (it waits for an approval), APPROVED, DECLINED or EXPIRED.")
    changes = ObjectField(help_text="Present and new value of each parameter that would change.")
    restarts = serializers.BooleanField(help_text="Whether the trial restarts the system.")
    people = serializers.IntegerField(help_text="Number of people who must approve it.")
    approvals = serializers.ListField(child=ObjectField(), help_text="Who has approved it: `actor` and `at`.")
    expires_at = serializers.DateTimeField()
    reason = serializers.CharField(help_text="Why it waits; empty while it runs.")
    reason_data = ReasonDataSerializer(allow_null=True)
    expected = serializers.FloatField(
        allow_null=True,
        help_text="Logarithm of the objective's ratio to the settings in force that the model expects; below 0 is"
        " better. Null: no model has suggested it.",
    )
    worst = serializers.FloatField(allow_null=True, help_text="The same, which it is rarely above.")


class LiveBudgetSerializer(serializers.Serializer[Any]):
    """The state of a budget in its present period."""

    name = serializers.CharField()
    metric = serializers.CharField(help_text="Metric that counts what is lost.")
    of = serializers.CharField(help_text="Metric that counts all.")
    per = serializers.CharField(help_text="hour, day or week.")
    began_at = serializers.DateTimeField(help_text="Begin of the present period.")
    limit = serializers.FloatField(allow_null=True, help_text="Most that may be lost; null: the rate is unknown.")
    spent = serializers.FloatField()
    left = serializers.FloatField(allow_null=True)
    worst = serializers.FloatField(help_text="Loss of a trial that fails totally.")


class KeptSerializer(serializers.Serializer[Any]):
    """Settings that were kept."""

    trial = serializers.IntegerField()
    params = ConfigurationField()
    effect = serializers.FloatField(
        allow_null=True, help_text="Logarithm of the objective's ratio to the settings before."
    )
    low = serializers.FloatField(allow_null=True, help_text="Lower end of its interval.")
    high = serializers.FloatField(allow_null=True, help_text="Upper end of its interval.")
    pairs = serializers.IntegerField()
    instances = serializers.ListField(child=serializers.CharField())
    at = serializers.DateTimeField()
    in_force = serializers.BooleanField(help_text="False: they were taken back, or other settings were found since.")
    reason = serializers.CharField(default="", help_text="Why they are not in force any more; may be empty.")


class LiveCheckSerializer(serializers.Serializer[Any]):
    """A comparison of all kept settings with those of the start."""

    trial = serializers.IntegerField()
    at = serializers.DateTimeField()
    effect = serializers.FloatField(allow_null=True, help_text="Logarithm of the objective's ratio to the start.")
    low = serializers.FloatField(allow_null=True, help_text="Valid at every look; null: not known yet.")
    high = serializers.FloatField(allow_null=True)
    pairs = serializers.IntegerField(help_text="Pairs of this check and of those before it.")
    steps = serializers.IntegerField(help_text="Number of kept trials whose settings were in force together.")


class LiveRolloutSerializer(serializers.Serializer[Any]):
    """The roll-out of the settings that a trial has kept."""

    trial = serializers.IntegerField()
    state = serializers.ChoiceField(["rolling", "watching"])
    stage = serializers.IntegerField(help_text="Number of stages that are done.")
    stages = serializers.ListField(
        child=serializers.IntegerField(), help_text="Number of instances with the settings after each stage."
    )
    in_force = serializers.ListField(
        child=serializers.CharField(), help_text="Instances with the settings, oldest first."
    )
    waiting = serializers.ListField(child=serializers.CharField(), help_text="Instances that are to get them.")
    held_back = serializers.ListField(
        child=serializers.CharField(), help_text="Instances that keep the earlier settings, for comparison."
    )
    reason = serializers.CharField(help_text="What happens now, and why.")
    due_at = serializers.DateTimeField(help_text="When its next trial may begin.")
    watched_until = serializers.DateTimeField(allow_null=True, help_text="Null: the settings go to further instances.")
    checks = serializers.IntegerField(help_text="Number of checks so far.")


class LiveReadingSerializer(serializers.Serializer[Any]):
    """The reading of a guard."""

    name = serializers.CharField()
    metric = serializers.CharField()
    above = serializers.BooleanField(help_text="True: the metric must not be above the limit; false: not below it.")
    limit = serializers.FloatField(allow_null=True, help_text="Null: the guard does not hold now.")
    value = serializers.FloatField(allow_null=True, help_text="Null: there is no reading.")
    seconds = serializers.FloatField(help_text="Seconds beyond the limit after which the guard is broken.")
    beyond = serializers.FloatField(help_text="Seconds for which it has been beyond the limit.")


class LiveLookSerializer(serializers.Serializer[Any]):
    """The answer of the test after a pair, as logarithms of the objective's ratio to the settings before."""

    at = serializers.FloatField(help_text="Seconds since 1970 by the agent's clock.")
    value = serializers.FloatField(help_text="The ratio in this pair alone.")
    effect = serializers.FloatField(help_text="The effect of all pairs so far.")
    low = serializers.FloatField(allow_null=True, help_text="Lower end of its interval; null: there is none yet.")
    high = serializers.FloatField(allow_null=True, help_text="Upper end of its interval; null: there is none yet.")


class LiveInstanceSerializer(serializers.Serializer[Any]):
    """An instance of a live system, as its agent has reported it last."""

    component = serializers.CharField(source="seen.component")
    instance = serializers.CharField(source="seen.instance")
    agent = serializers.CharField()
    seen_at = serializers.DateTimeField(help_text="When the agent has reported this.")
    state = serializers.ChoiceField(
        STATES,
        source="seen.state",
        help_text="idle: no settings of a trial are in force; running: a trial compares; kept: settings of a trial stay"
        " in force, under guards; stuck: they could not be taken back; stopped: a person lets no trial begin.",
    )
    trial = serializers.IntegerField(allow_null=True, help_text="The trial that runs or whose settings are in force.")
    phase = serializers.CharField(
        source="seen.phase", help_text="reading, control, switch, warm_up, block, revert or kept; empty: unknown."
    )
    left = serializers.FloatField(source="seen.left", help_text="Seconds until the phase ends; 0: unknown.")
    candidate = serializers.BooleanField(
        source="seen.candidate", help_text="Whether the settings in force are those of the trial."
    )
    settings = ConfigurationField(source="seen.settings", help_text="In force now; empty: unknown.")
    reason = serializers.CharField(
        source="seen.reason", help_text="Why it is stuck or stopped, or why the last kept settings were taken back."
    )
    guards = LiveReadingSerializer(many=True, source="seen.guards")
    looks = LiveLookSerializer(many=True, source="seen.looks", help_text="The latest pairs of the running trial.")
    pairs = serializers.IntegerField(source="seen.pairs", help_text="Number of pairs so far.")
    revert_at = serializers.DateTimeField(
        allow_null=True, help_text="When somebody has asked for the old settings; null once they are in force."
    )


class LiveWindowSerializer(serializers.Serializer[Any]):
    """A change window."""

    name = serializers.CharField(help_text="window, or restart_window for trials that restart the system.")
    days = serializers.CharField()
    hours = serializers.CharField()
    zone = serializers.CharField()
    opens_at = serializers.DateTimeField(allow_null=True, help_text="Null while it is open.")
    left = serializers.FloatField(help_text="Seconds until it closes; 0 while it is closed.")


class LiveOutcomeSerializer(serializers.Serializer[Any]):
    """The end of a live trial."""

    trial = serializers.IntegerField()
    state = serializers.ChoiceField([one.value for one in TrialState])
    decision = serializers.CharField(help_text="As in the trial's result; empty: unknown.")
    effect = serializers.FloatField(
        allow_null=True, help_text="Logarithm of the objective's ratio to the settings before."
    )
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    pairs = serializers.IntegerField()
    kept = serializers.BooleanField()
    guard = serializers.CharField(help_text="Metric of the guard that it broke; empty: none.")
    reason = serializers.CharField()
    reason_data = ReasonDataSerializer(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    changes = ObjectField(help_text="Value before and value of the trial, of each parameter that it changed.")


class LiveDetailsSerializer(serializers.Serializer[Any]):
    """The rules of a live study, and its latest outcomes."""

    component = serializers.CharField()
    application = serializers.CharField()
    metric = serializers.CharField(help_text="The objective.")
    goal = serializers.ChoiceField(["minimize", "maximize"])
    min_gain = serializers.FloatField(help_text="Least gain worth keeping, as a share.")
    most_pairs = serializers.IntegerField()
    approve = ObjectField(help_text="Which trials people approve, as in a study file: `trials` or `first`, `people`.")
    freeze = serializers.FloatField(help_text="Share of trials that may break a guard before the study is paused.")
    least_broken = serializers.IntegerField(help_text="Number of them before which it is not paused.")
    windows = LiveWindowSerializer(many=True)
    outcomes = LiveOutcomeSerializer(many=True, help_text="At most 30, the newest first.")


class LiveJobsSerializer(serializers.Serializer[Any]):
    """The jobs that a live study of jobs learns from."""

    record = serializers.CharField(help_text="Record whose jobs these are; empty if it was deleted.")
    matched = serializers.IntegerField(help_text="Jobs that have matched the record within the last `days`.")
    days = serializers.IntegerField()
    candidates = serializers.IntegerField(help_text="Jobs that have had a candidate.")
    open = serializers.IntegerField(help_text="Pairs whose jobs have not both ended.")
    counted = serializers.IntegerField(help_text="Pairs that are evidence.")
    void = serializers.IntegerField(help_text="Pairs that are no evidence.")
    share = serializers.FloatField(
        allow_null=True, help_text="Share of matched jobs that may get a candidate; null: no agent has told it."
    )
    reason = serializers.CharField(help_text="Why no pair may begin now; empty if one may.")
    reason_data = ReasonDataSerializer(allow_null=True)


class LiveStatusSerializer(serializers.Serializer[Any]):
    """The state of a live study."""

    study = serializers.CharField(source="study.name")
    state = serializers.ChoiceField([one.value for one in StudyState], source="study.state")
    state_reason = serializers.CharField(source="study.state_reason")
    state_reason_data = ReasonDataField("state_reason", source="study")
    in_force = ConfigurationField(help_text="Settings of the system.")
    known = serializers.BooleanField(help_text="False: no trial has read them yet, and `in_force` has the defaults.")
    original = ConfigurationField(help_text="Settings that the first trial found.")
    plans = LivePlanSerializer(many=True)
    kept = KeptSerializer(many=True, help_text="Settings that were kept, oldest first.")
    budgets = LiveBudgetSerializer(many=True)
    settled = serializers.IntegerField(help_text="Candidates that have been in force.")
    broken = serializers.IntegerField(help_text="Number of them that broke a guard.")
    deviation = serializers.FloatField(help_text="Of the effect in one pair; 0: it is unknown.")
    jobs = LiveJobsSerializer(allow_null=True, required=False, help_text="Null for a study whose trials are not jobs.")
    rollout = LiveRolloutSerializer(allow_null=True, help_text="Null: none goes on.")
    checks = LiveCheckSerializer(many=True, help_text="Comparisons of the kept settings with the start, oldest first.")
    instances = LiveInstanceSerializer(many=True, help_text="Those that agents have switched for the study.")
    details = LiveDetailsSerializer()


class LiveBriefSerializer(serializers.Serializer[Any]):
    """A live study in a list."""

    name = serializers.CharField()
    state = serializers.ChoiceField([one.value for one in StudyState])
    state_reason = serializers.CharField()
    component = serializers.CharField()
    application = serializers.CharField()
    waiting = serializers.IntegerField(help_text="Plans that wait for an approval.")
    running = serializers.IntegerField(help_text="Trials that run.")
    instances = ObjectField(help_text="Number of instances by state.")


class LiveBoardQuery(Input):
    """The study to show in full."""

    study = serializers.CharField(required=False, default="", help_text="Default: the first one.")


class LiveBoardSerializer(serializers.Serializer[Any]):
    """The live studies."""

    studies = LiveBriefSerializer(many=True, help_text="At most 50, open ones first.")
    left_off = serializers.IntegerField(help_text="Number of further studies.")
    shown = LiveStatusSerializer(allow_null=True)


class DecideSerializer(Input):
    """The reason of a decision, for people."""

    reason = serializers.CharField(required=False, default="", allow_blank=True)


class StopSerializer(DecideSerializer):
    """How a live study is stopped."""

    leave_kept = serializers.BooleanField(
        required=False, default=False, help_text="Whether settings that earlier trials have kept stay in force."
    )


class LivePairSerializer(serializers.Serializer[Any]):
    """A block with the candidate and one with the settings in force."""

    candidate_first = serializers.BooleanField()
    candidate = serializers.FloatField(help_text="Mean logarithm of the objective with the candidate.")
    incumbent = serializers.FloatField(help_text="The same with the settings in force.")
    load = serializers.FloatField()
    candidate_metrics = MetricsField()
    incumbent_metrics = MetricsField()
    began = serializers.FloatField(help_text="Seconds since 1970 by the agent's clock.")


class LiveEntrySerializer(serializers.Serializer[Any]):
    """An entry of the agent's journal. Its hash covers all entries before it."""

    time = serializers.FloatField()
    kind = serializers.CharField()
    text = serializers.CharField()
    hash = serializers.CharField()


class LiveResultSerializer(serializers.Serializer[Any]):
    """The result of the last lease of a live trial."""

    decision = serializers.CharField(
        source="result.decision", help_text="keep, harm, futile, most, guard, budget, window, stopped or carry_over."
    )
    pairs = LivePairSerializer(many=True, source="result.pairs")
    effect = serializers.FloatField(
        allow_null=True, source="result.effect", help_text="Logarithm of the objective's ratio to the settings before."
    )
    low = serializers.FloatField(allow_null=True, source="result.low", help_text="Valid at every look.")
    high = serializers.FloatField(allow_null=True, source="result.high")
    cost = MetricsField(source="result.cost", help_text="Losses by the name of the budget.")
    incumbent = ConfigurationField(source="result.incumbent", help_text="Settings before the trial.")
    instances = serializers.ListField(child=serializers.CharField(), source="result.instances")
    kept = serializers.BooleanField(source="result.kept")
    rolled_back = serializers.BooleanField(
        source="result.rolled_back", help_text="Whether the settings of the study were taken back on all instances."
    )
    audit = LiveEntrySerializer(many=True, source="result.audit")
    seed = serializers.CharField(help_text="Seed of the coin, which was secret until the result.")
    commitment = serializers.CharField(help_text="SHA-256 of the seed, which the audit trail had before the trial.")
    broken_link = serializers.IntegerField(
        allow_null=True, help_text="Place of the first journal entry whose hash does not follow; null: all do."
    )
