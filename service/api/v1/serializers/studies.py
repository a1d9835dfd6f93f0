"""Studies."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from service.api.v1.serializers.fields import (
    ConfigurationField,
    Input,
    MetricsField,
    ObjectField,
    PageQuery,
    ScalarsField,
    StateField,
)
from service.api.v1.serializers.problems import StudySpecSerializer
from service.api.v1.serializers.trials import TrialSerializer
from service.core.lifecycle import StudyState
from service.studies import selectors
from service.studies.models import Study
from service.studies.specs import budget_of, spec_of


@extend_schema_field(StudySpecSerializer)
class SpecField(serializers.JSONField):
    """A spec as it came; `studies/specs.py` checks it and names the field at fault."""


class FileField(serializers.CharField):
    """The text of a study file, in place of a spec; `planning/study_file.py` reads it and names the field at fault."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            default=None,
            allow_blank=True,
            trim_whitespace=False,
            help_text="A study file (YAML or JSON) in place of `spec`. Errors name the place in the file.",
        )


class StudyTextSerializer(serializers.Serializer[Any]):
    """A study as a study file."""

    text = serializers.CharField(help_text="YAML.")


class MeasuredSerializer(serializers.Serializer[Any]):
    """A configuration with the estimates of its metrics, from all trials that measured it."""

    numbers = serializers.ListField(child=serializers.IntegerField(), help_text="Of the trials.")
    params = ConfigurationField()
    metrics = MetricsField(help_text="Medians over the trials.")


class ObjectiveSerializer(serializers.Serializer[Any]):
    """How far an objective has come: what lists and analyses say alike."""

    metric = serializers.CharField()
    goal = serializers.ChoiceField(["minimize", "maximize"])
    unit = serializers.CharField()
    default = serializers.FloatField(allow_null=True, help_text="Of the default configuration; null until measured.")
    best = serializers.FloatField(allow_null=True, help_text="Of the best configuration (of the Pareto set).")
    gain = serializers.FloatField(
        allow_null=True, help_text="0.25: a quarter better than the default, in the direction of the goal."
    )


class ObjectiveProgressSerializer(ObjectiveSerializer):
    """How far an objective has come."""

    gain_low = serializers.FloatField(
        allow_null=True, help_text="The gain lies between low and high with 95 %; null for too few measurements."
    )
    gain_high = serializers.FloatField(allow_null=True)
    noise = serializers.FloatField(
        allow_null=True,
        help_text="Standard deviation of one measurement, freak runs aside; null where nothing was measured twice.",
    )


class RecommendationSerializer(serializers.Serializer[Any]):
    """The configuration to take: by a posterior or an estimate over replicates, not the best single run."""

    configuration = ConfigurationField()
    value = serializers.FloatField(help_text="What is expected of the objective, without the noise of single runs.")
    low = serializers.FloatField(allow_null=True, help_text="It lies between low and high with 95 %.")
    high = serializers.FloatField(allow_null=True)


class AlgorithmChoiceSerializer(serializers.Serializer[Any]):
    """The algorithm that a choosing algorithm such as `auto` has chosen."""

    name = serializers.CharField()
    reason = serializers.CharField()


class StartedFromSerializer(serializers.Serializer[Any]):
    """What an earlier study gave to one that starts from it."""

    study = serializers.CharField()
    taken = serializers.IntegerField(help_text="How many of its configurations are measured first.")
    passed_over = serializers.IntegerField(help_text="How many of its best lie outside of the new study's space.")


class VerdictSerializer(serializers.Serializer[Any]):
    """What the final check has found out. Gains are shares of the default's value."""

    text = serializers.CharField(help_text='"faster by 12 % (95 %: 9 to 15)" or "no measurable gain".')
    gain = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    trials = serializers.IntegerField(help_text="That the final check took.")


class AnalysisSerializer(serializers.Serializer[Any]):
    """What a study has found out so far."""

    revision = serializers.IntegerField(help_text="Of the study that this is true of.")
    default_params = ConfigurationField()
    default = MeasuredSerializer(allow_null=True, help_text="The default configuration, once it was measured.")
    best = MeasuredSerializer(many=True, help_text="One configuration; the Pareto set with several objectives.")
    objectives = ObjectiveProgressSerializer(many=True)
    recommendation = RecommendationSerializer(
        allow_null=True, help_text="Null with several objectives, and before anything was measured."
    )
    configurations = serializers.IntegerField(help_text="How many different ones were measured.")
    space_size = serializers.FloatField(
        allow_null=True,
        help_text="How many configurations the parameters have, conditions and constraints aside; null: a continuum.",
    )
    behind = serializers.BooleanField(
        help_text="Whether the study has changed since and takes a while to sum up: ask again in some seconds."
    )


class StudySerializer(serializers.Serializer[Any]):
    """A study."""

    name = serializers.CharField()
    spec = serializers.SerializerMethodField()
    state = StateField(StudyState)
    state_reason = serializers.CharField()
    algorithm_choice = serializers.SerializerMethodField()
    search_end_reason = serializers.SerializerMethodField()
    started_from = serializers.SerializerMethodField()
    verdict = VerdictSerializer(allow_null=True, help_text="Of the final check, once it is over.")
    revision = serializers.IntegerField(help_text="Raised by every change of the study or of one of its trials.")
    trial_count = serializers.IntegerField()
    requested_count = serializers.IntegerField()
    active_count = serializers.IntegerField()
    finished_count = serializers.IntegerField()
    exhausted = serializers.BooleanField(help_text="The space holds no configuration that was not tried.")
    space_version = serializers.IntegerField(help_text="One more with each change of the space; 1 at first.")
    owner = serializers.CharField(help_text="Who created it.")
    tags = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    @extend_schema_field(StudySpecSerializer)
    def get_spec(self, study: Study) -> dict[str, Any]:
        """The spec with all defaults filled in, and the budget as it is now."""
        return {**spec_of(study).to_json(), "budget": budget_of(study).to_json()}

    @extend_schema_field(AlgorithmChoiceSerializer(allow_null=True))
    def get_algorithm_choice(self, study: Study) -> dict[str, Any] | None:
        """Null where the spec names the algorithm itself."""
        choice = spec_of(study).choice
        return None if choice is None else AlgorithmChoiceSerializer(choice).data

    @extend_schema_field(StartedFromSerializer(many=True))
    def get_started_from(self, study: Study) -> Any:
        """What came of `start_from`, when the study was created."""
        return StartedFromSerializer(spec_of(study).started_from, many=True).data

    def get_search_end_reason(self, study: Study) -> str:
        """Why the search is over; empty before, and without a final check."""
        return "" if study.final_check is None else str(study.final_check["reason"])


class SummarisedObjectiveSerializer(ObjectiveSerializer):
    """How far an objective has come, as of a few seconds ago; the gain is the final check's, where there was one."""

    low = serializers.FloatField(allow_null=True, help_text="The gain lies between low and high with 95 %.")
    high = serializers.FloatField(allow_null=True, help_text="Null where nothing is known of the noise.")


class ListedStudySerializer(serializers.Serializer[Any]):
    """A study in a list: without its space, and its results as of a few seconds ago."""

    name = serializers.CharField()
    component = serializers.CharField(help_text="Empty for a study that is asked and told.")
    application = serializers.CharField()
    algorithm = serializers.SerializerMethodField()
    owner = serializers.CharField(help_text="Who created it.")
    tags = serializers.ListField(child=serializers.CharField())
    state = StateField(StudyState)
    state_reason = serializers.CharField()
    max_trials = serializers.SerializerMethodField(help_text="Null: no such limit.")
    requested_count = serializers.IntegerField()
    active_count = serializers.IntegerField()
    finished_count = serializers.IntegerField()
    objectives = serializers.SerializerMethodField(help_text="Empty until the first results were looked at.")
    verdict = VerdictSerializer(allow_null=True, help_text="Of the final check, once it is over.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_algorithm(self, study: Study) -> str:
        """Its name, and what it has chosen, where it is one that chooses."""
        return spec_of(study).algorithm

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_max_trials(self, study: Study) -> int | None:
        """The budget's."""
        return budget_of(study).max_trials

    @extend_schema_field(SummarisedObjectiveSerializer(many=True))
    def get_objectives(self, study: Study) -> Any:
        """From its summary."""
        summary = getattr(study, "summary", None)
        return [] if summary is None else SummarisedObjectiveSerializer(summary.objectives, many=True).data


class StudyListSerializer(serializers.Serializer[Any]):
    """A page of studies."""

    studies = ListedStudySerializer(many=True)
    next_page_token = serializers.CharField(help_text="Empty on the last page.")
    total_count = serializers.IntegerField()


class StudyQuery(PageQuery):
    """Which studies."""

    state = serializers.ListField(child=StateField(StudyState), required=False, default=list)
    name_prefix = serializers.CharField(required=False, default="", allow_blank=True)
    component = serializers.CharField(required=False, default="", allow_blank=True)
    search = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="In the name, the component, the application or the owner; or a tag.",
    )
    application = serializers.CharField(required=False, default="", allow_blank=True)
    owner = serializers.CharField(required=False, default="", allow_blank=True)
    tag = serializers.ListField(child=serializers.CharField(), required=False, default=list, help_text="All of them.")
    attention = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Only those that the service has paused, and those whose trials no agent takes.",
    )
    sort = serializers.ChoiceField(
        [way + key for key in selectors.SORTS for way in ("", "-")],
        required=False,
        default=selectors.NEWEST,
        error_messages={"invalid_choice": f"{', '.join(selectors.SORTS)}; with - in front, the last first"},
    )


class FacetSerializer(serializers.Serializer[Any]):
    """A value, and how many studies have it."""

    value = serializers.CharField()
    count = serializers.IntegerField()


class StudyFacetsSerializer(serializers.Serializer[Any]):
    """What studies can be filtered by."""

    states = FacetSerializer(many=True)
    components = FacetSerializer(many=True)
    applications = FacetSerializer(many=True)
    owners = FacetSerializer(many=True)
    tags = FacetSerializer(many=True)
    attention = serializers.IntegerField(help_text="How many go on after somebody has done something.")


class CreateStudySerializer(Input):
    """A study to create."""

    name = serializers.CharField(help_text="It goes before the file's.")
    spec = SpecField(required=False, default=None)
    file = FileField()
    tags = serializers.ListField(child=serializers.CharField(), required=False, default=list)
    load_if_exists = serializers.BooleanField(
        required=False, default=False, help_text="Answer with the study of this name if it asks the same question."
    )
    request_id = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="The same again creates nothing again."
    )


class StudyNameSerializer(Input):
    """What a new study is to be called."""

    name = serializers.CharField()


class UpdateStudySerializer(Input):
    """A step of a study to another state, or other tags."""

    state = StateField(StudyState, required=False)
    tags = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="In place of those that it has."
    )
    reason = serializers.CharField(required=False, default="", allow_blank=True)


class BudgetInputSerializer(Input):
    """What the search may spend in all; null: no limit. What is left out stays."""

    max_trials = serializers.IntegerField(allow_null=True, required=False)
    max_seconds = serializers.FloatField(allow_null=True, required=False)
    max_node_hours = serializers.FloatField(allow_null=True, required=False)


class RangeSerializer(serializers.Serializer[Any]):
    """Of a number its bounds, of which one left out stays; of a list of choices all values that it is to have."""

    min = serializers.FloatField(required=False)
    max = serializers.FloatField(required=False)
    values = ScalarsField(required=False)


@extend_schema_field(serializers.DictField(child=RangeSerializer()))
class RangesField(ObjectField):
    """Ranges by parameter. Kept as they are: `core/ranges.py` checks them."""


class ChangeSpaceSerializer(Input):
    """Other ranges for parameters of a study."""

    ranges = RangesField()
    validate_only = serializers.BooleanField(
        required=False, default=False, help_text="Change nothing: only say what would lie outside, and what is wrong."
    )


class OutsideSerializer(serializers.Serializer[Any]):
    """How many trials lie outside of a space, by what they were when it was asked for."""

    finished = serializers.IntegerField(help_text="They stay, but nothing is learned from them.")
    running = serializers.IntegerField(help_text="They may finish.")
    waiting = serializers.IntegerField(help_text="They are withdrawn, and do not count against the budget.")


class ChangedSpaceSerializer(serializers.Serializer[Any]):
    """A study whose space was changed, or would be."""

    study = StudySerializer()
    outside = OutsideSerializer()


class StudyEventSerializer(serializers.Serializer[Any]):
    """The data of a server-sent event `change`."""

    study = StudySerializer()
    trials = TrialSerializer(many=True, help_text="Those that changed.")
    revision = serializers.IntegerField(help_text="The study as of which the trials are told; also the event's id.")
    more = serializers.BooleanField(help_text="Whether further changes follow at once.")
    sampled = serializers.BooleanField(
        help_text="The trials are a sample of all that there are, as `most` asked for, not those that changed."
    )
