"""Studies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from service.api.v1.serializers.analysis import LEVELS, ObjectiveSerializer
from service.api.v1.serializers.fields import (
    ConfigurationField,
    Input,
    PageQuery,
    ReasonDataField,
    StateField,
    VerdictConditionSerializer,
    WhereField,
)
from service.api.v1.serializers.problems import StudySpecSerializer
from service.api.v1.serializers.trials import TrialSerializer
from service.core.lifecycle import StudyState
from service.core.reasons import restored
from service.policies.check import FinalCheck
from service.studies import selectors
from service.studies.models import Study
from service.studies.specs import budget_of, spec_of


@extend_schema_field(StudySpecSerializer)
class SpecField(serializers.JSONField):
    """A spec that is not changed; `studies/specs.py` checks it and names the field at fault."""


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


_OF_CHECK = "Finished trials of final checks, which `finished_count` includes and the budget does not."


def _check_count(study: Study) -> int:
    if study.final_check is None:
        return study.earlier_checks
    # During a final check all open trials are its own.
    return study.earlier_checks + max(int(study.final_check["trials"]) - study.open_count, 0)


def _search_count(study: Study) -> int:
    return max(study.finished_count - study.added_count - (_check_count(study) - study.earlier_checks), 0)


_OF_SEARCH = "Finished trials that count against the budget: those of the search, without added ones."


class AlgorithmChoiceSerializer(serializers.Serializer[Any]):
    """The algorithm that a choosing algorithm such as `auto` has chosen."""

    name = serializers.CharField()
    reason = serializers.CharField()
    reason_data = ReasonDataField("reason")


class StartedFromSerializer(serializers.Serializer[Any]):
    """The configurations that came from an earlier study."""

    study = serializers.CharField()
    taken = serializers.IntegerField(help_text="Number of its configurations that are measured first.")
    passed_over = serializers.IntegerField(
        help_text="Number of its best configurations that are outside the new study's space."
    )


class EarlierTrialsSerializer(serializers.Serializer[Any]):
    """How the trials of a study count after an edit of its space."""

    total = serializers.IntegerField(help_text="Number of trials.")
    used = serializers.IntegerField(help_text="Number of them that the algorithm uses.")
    imputed = serializers.IntegerField(help_text="Number of used trials that lack a parameter and count with `values`.")
    unfinished = serializers.IntegerField(help_text="Number of all trials that were running or waiting.")
    left_out = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Number of trials that are left out, by the parameter of which they have another value.",
    )
    values = ConfigurationField(help_text="Values with which trials that lack the added parameters count.")
    text = serializers.CharField(help_text="The numbers as a sentence.")


class SpaceEditSerializer(serializers.Serializer[Any]):
    """An edit of the parameters of a study."""

    version = serializers.IntegerField(help_text="Version of the space that the edit has made.")
    added = serializers.ListField(child=serializers.CharField())
    removed = ConfigurationField(help_text="Removed parameters, with the values that they have since.")
    fixed = ConfigurationField()
    freed = serializers.ListField(child=serializers.CharField())
    trials = EarlierTrialsSerializer()
    actor = serializers.CharField()
    at = serializers.DateTimeField()


class StudySerializer(serializers.Serializer[Any]):
    """A study."""

    name = serializers.CharField()
    uid = serializers.UUIDField(help_text="Its identity: another study that later has the same name has another one.")
    spec = serializers.SerializerMethodField()
    state = StateField(StudyState)
    state_reason = serializers.CharField()
    state_reason_data = ReasonDataField("state_reason")
    algorithm_choice = serializers.SerializerMethodField()
    search_end_reason = serializers.SerializerMethodField()
    started_from = serializers.SerializerMethodField()
    fixed = serializers.SerializerMethodField()
    removed = serializers.SerializerMethodField()
    imputed = serializers.SerializerMethodField()
    space_edits = serializers.SerializerMethodField()
    revision = serializers.IntegerField(help_text="Every change of the study or of a trial increases it.")
    check_count = serializers.SerializerMethodField(help_text=_OF_CHECK)
    check_limit = serializers.SerializerMethodField(
        help_text="Most trials that `check_count` reaches in the present stage of the final check; null: none is under"
        " way."
    )
    search_count = serializers.SerializerMethodField(help_text=_OF_SEARCH)
    trial_count = serializers.IntegerField()
    requested_count = serializers.IntegerField()
    active_count = serializers.IntegerField()
    finished_count = serializers.IntegerField()
    exhausted = serializers.BooleanField(help_text="True if every configuration of the space was tried.")
    space_version = serializers.IntegerField(help_text="Each change of the space increases it; it starts at 1.")
    owner = serializers.CharField(help_text="Who created it.")
    tags = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    @extend_schema_field(StudySpecSerializer)
    def get_spec(self, study: Study) -> dict[str, Any]:
        """Return the spec with all defaults and the present budget."""
        return {**spec_of(study).to_json(), "budget": budget_of(study).to_json()}

    @extend_schema_field(AlgorithmChoiceSerializer(allow_null=True))
    def get_algorithm_choice(self, study: Study) -> dict[str, Any] | None:
        """Return the choice; null if the spec names the algorithm."""
        choice = spec_of(study).choice
        if choice is None:
            return None
        return AlgorithmChoiceSerializer(replace(choice, reason=restored(choice.reason, study.choice_reason_data))).data

    @extend_schema_field(StartedFromSerializer(many=True))
    def get_started_from(self, study: Study) -> Any:
        """Return the configurations by `start_from` when the study was created."""
        return StartedFromSerializer(spec_of(study).started_from, many=True).data

    @extend_schema_field(ConfigurationField())
    def get_fixed(self, study: Study) -> Any:
        """Return the values of the fixed parameters, which have only this value in the spec."""
        return dict(spec_of(study).whole_space.fixed)

    @extend_schema_field(ConfigurationField())
    def get_removed(self, study: Study) -> Any:
        """Return the removed parameters, with the values that they have since."""
        return spec_of(study).whole_space.left

    @extend_schema_field(ConfigurationField())
    def get_imputed(self, study: Study) -> Any:
        """Return the added parameters, with the values with which trials that lack them count."""
        return spec_of(study).whole_space.added

    @extend_schema_field(SpaceEditSerializer(many=True))
    def get_space_edits(self, study: Study) -> Any:
        """Return the edits of the space, oldest first."""
        return SpaceEditSerializer(spec_of(study).edits, many=True).data

    def get_check_count(self, study: Study) -> int:
        """Return the number of trials of the final check."""
        return _check_count(study)

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_check_limit(self, study: Study) -> int | None:
        """Return the most trials of the check; after these, more find which changes matter."""
        check = study.final_check
        if check is None or study.state not in (StudyState.ACTIVE, StudyState.PAUSED):
            return None
        spec = spec_of(study)
        objectives = len(spec.problem.objectives)
        policy = FinalCheck.parse(check.get("policy") or spec.final_check or {}, "final_check", objectives)
        first = int(check["trials"]) <= policy.max_trials
        return study.earlier_checks + policy.max_trials + (0 if first else policy.effects)

    def get_search_count(self, study: Study) -> int:
        """Return the number of finished trials that count against the budget."""
        return _search_count(study)

    def get_search_end_reason(self, study: Study) -> str:
        """Return why the search has ended; empty during the search, and without a final check."""
        return "" if study.final_check is None else str(study.final_check["reason"])


class SummarisedObjectiveSerializer(ObjectiveSerializer):
    """The progress of an objective some seconds ago, in the numbers of the verdict."""

    low = serializers.FloatField(allow_null=True, help_text="95 % interval of the gain, from low to high.")
    high = serializers.FloatField(allow_null=True, help_text="Null if the noise is unknown.")
    level = serializers.ChoiceField(
        LEVELS, allow_null=True, default=None, help_text="Level of the verdict; null before there is one."
    )
    runs = serializers.IntegerField(
        allow_null=True, default=None, help_text="Number of trials that measured the recommended configuration."
    )
    default_runs = serializers.IntegerField(
        allow_null=True, default=None, help_text="Number of trials that measured the default."
    )
    measured = serializers.IntegerField(
        allow_null=True, default=None, help_text="Number of trials of the study that were measured."
    )
    doubtful = serializers.IntegerField(
        allow_null=True, default=None, help_text="Number of them with a doubtful timing."
    )
    code = serializers.CharField(allow_null=True, default=None, help_text="Code of the verdict, as in the analysis.")
    rounds = serializers.IntegerField(
        allow_null=True, default=None, help_text="Number of complete rounds of the final check."
    )
    disturbed_rounds = serializers.IntegerField(
        allow_null=True, default=None, help_text="Number of them that other processes have disturbed."
    )
    conditions = VerdictConditionSerializer(
        many=True, default=[], help_text="Circumstances under which the numbers hold."
    )
    front = serializers.IntegerField(
        allow_null=True,
        default=None,
        help_text="Number of configurations on the Pareto front; null with one objective.",
    )
    trend = serializers.ListField(
        child=serializers.FloatField(),
        default=[],
        help_text="Best values so far at up to 24 moments of the search; empty with several objectives or a context.",
    )
    context_words = serializers.CharField(
        allow_null=True,
        default=None,
        help_text="The context of these numbers, in a study with a context: that of the best known gain.",
    )


class ListedStudySerializer(serializers.Serializer[Any]):
    """A study in a list, without its space. Its results are some seconds old."""

    name = serializers.CharField()
    uid = serializers.UUIDField(help_text="Its identity: another study that later has the same name has another one.")
    component = serializers.CharField(help_text="Empty for a study without agents.")
    application = serializers.CharField()
    live = serializers.SerializerMethodField(help_text="Whether it tunes a system that serves, or production jobs.")
    algorithm = serializers.SerializerMethodField()
    owner = serializers.CharField(help_text="Who created it.")
    tags = serializers.ListField(child=serializers.CharField())
    state = StateField(StudyState)
    state_reason = serializers.CharField()
    state_reason_data = ReasonDataField("state_reason")
    max_trials = serializers.SerializerMethodField(help_text="Null: no limit.")
    requested_count = serializers.IntegerField()
    active_count = serializers.IntegerField()
    finished_count = serializers.IntegerField()
    check_count = serializers.SerializerMethodField(help_text=_OF_CHECK)
    search_count = serializers.SerializerMethodField(help_text=_OF_SEARCH)
    objectives = serializers.SerializerMethodField(help_text="Empty before the first results were summarised.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_live(self, study: Study) -> bool:
        """Return whether it is a live study."""
        return spec_of(study).live is not None

    def get_algorithm(self, study: Study) -> str:
        """Return the name of the algorithm, and of its choice if it chooses another."""
        return spec_of(study).algorithm.name

    def get_check_count(self, study: Study) -> int:
        """Return the number of trials of the final check."""
        return _check_count(study)

    def get_search_count(self, study: Study) -> int:
        """Return the number of finished trials that count against the budget."""
        return _search_count(study)

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_max_trials(self, study: Study) -> int | None:
        """Return the limit in the budget."""
        return budget_of(study).max_trials

    @extend_schema_field(SummarisedObjectiveSerializer(many=True))
    def get_objectives(self, study: Study) -> Any:
        """Return the objectives from the summary."""
        summary = getattr(study, "summary", None)
        return [] if summary is None else SummarisedObjectiveSerializer(summary.objectives, many=True).data


class StudyListSerializer(serializers.Serializer[Any]):
    """A page of studies."""

    studies = ListedStudySerializer(many=True)
    next_page_token = serializers.CharField(help_text="Empty on the last page.")
    total_count = serializers.IntegerField()


class StudyQuery(PageQuery):
    """The filter and the order of a list of studies."""

    state = serializers.ListField(child=StateField(StudyState), required=False, default=list)
    name_prefix = serializers.CharField(required=False, default="", allow_blank=True)
    component = serializers.CharField(required=False, default="", allow_blank=True)
    search = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="Text in the name, component, application or owner, or a tag.",
    )
    application = serializers.CharField(required=False, default="", allow_blank=True)
    owner = serializers.CharField(required=False, default="", allow_blank=True)
    tag = serializers.ListField(
        child=serializers.CharField(), required=False, default=list, help_text="The study must have all these tags."
    )
    attention = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Only studies that the service has paused, or whose trials no agent takes.",
    )
    where = WhereField(selectors.COLUMNS, "`gain > 10` (per cent), `owner = grace`")
    sort = serializers.ChoiceField(
        [way + key for key in selectors.SORTS for way in ("", "-")],
        required=False,
        default=selectors.NEWEST,
        error_messages={
            "invalid_choice": f"{', '.join(selectors.SORTS)}, or one of these after a - for descending order"
        },
    )


class FacetSerializer(serializers.Serializer[Any]):
    """A value and the number of studies with it."""

    value = serializers.CharField()
    count = serializers.IntegerField()


class StudyFacetsSerializer(serializers.Serializer[Any]):
    """The values by which studies can be filtered."""

    states = FacetSerializer(many=True)
    components = FacetSerializer(many=True)
    applications = FacetSerializer(many=True)
    owners = FacetSerializer(many=True)
    tags = FacetSerializer(many=True)
    attention = serializers.IntegerField(help_text="Number of studies that need an action of a person to continue.")


class CreateStudySerializer(Input):
    """A study to create."""

    name = serializers.CharField(help_text="It overrides the name in the file.")
    spec = SpecField(required=False, default=None)
    file = FileField()
    tags = serializers.ListField(child=serializers.CharField(), required=False, default=list)
    load_if_exists = serializers.BooleanField(
        required=False, default=False, help_text="Return the study of this name if it has the same problem."
    )
    request_id = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="A repeated call with the same value creates nothing."
    )


class StudyNameSerializer(Input):
    """The name for a new study."""

    name = serializers.CharField()


class UpdateStudySerializer(Input):
    """A new state of a study, or new tags."""

    state = StateField(StudyState, required=False)
    tags = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="They replace the present tags."
    )
    reason = serializers.CharField(required=False, default="", allow_blank=True)


class BudgetInputSerializer(Input):
    """The whole budget of the search; null: no limit. A missing field stays unchanged."""

    max_trials = serializers.IntegerField(allow_null=True, required=False)
    max_seconds = serializers.FloatField(allow_null=True, required=False)
    max_node_hours = serializers.FloatField(allow_null=True, required=False)


class CheckInputSerializer(Input):
    """The settings of a new final check. A missing field has the value of the study's spec, or else its default."""

    width = serializers.FloatField(
        allow_null=True, required=False, help_text="Width of the interval, as a share of the default's value."
    )
    max_trials = serializers.IntegerField(allow_null=True, required=False, help_text="Most trials of the check.")
    level = serializers.FloatField(
        allow_null=True, required=False, help_text="Probability that the gain is in its interval: 0.95."
    )
    effects = serializers.IntegerField(
        allow_null=True, required=False, help_text="Further trials that find which changes carry a proven gain."
    )
    request_id = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="A repeated call with the same value changes nothing."
    )


class StudyEventSerializer(serializers.Serializer[Any]):
    """The data of a server-sent event `change`."""

    study = StudySerializer()
    trials = TrialSerializer(many=True, help_text="Changed trials.")
    revision = serializers.IntegerField(
        help_text="Revision of the study that the event describes; also the id of the event."
    )
    more = serializers.BooleanField(help_text="True if more changes follow at once.")
    sampled = serializers.BooleanField(
        help_text="True if the trials are a sample of all trials, as `most` requested, and not the changed ones."
    )
