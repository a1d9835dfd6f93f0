"""Components."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, Input, ScalarsField, StateField
from service.api.v1.serializers.problems import ParameterSerializer
from service.api.v1.serializers.studies import SummarisedObjectiveSerializer
from service.core.lifecycle import StudyState
from service.planning.gallery import Evidence


class OfferingAgentSerializer(serializers.Serializer[Any]):
    """An agent that offers a component."""

    agent_id = serializers.CharField()
    name = serializers.CharField()
    online = serializers.BooleanField()
    draining = serializers.BooleanField()
    slots = serializers.IntegerField()


class InjectedSerializer(serializers.Serializer[Any]):
    """A part of the measurements that the tuned system does not have by itself."""

    text = serializers.CharField(help_text='"contention of the file server".')
    application = serializers.CharField(help_text="Application whose runs contain it; empty: all applications.")
    parameter = serializers.CharField(help_text="Parameter whose values decide; empty: all runs contain it.")
    values = ScalarsField(help_text="Values of the parameter with which a run contains it.")


class VersionSerializer(serializers.Serializer[Any]):
    """One digest of a component, and the agents that offer it."""

    digest = serializers.CharField()
    description = serializers.CharField()
    applications = serializers.ListField(child=serializers.CharField())
    metrics = serializers.ListField(child=serializers.CharField())
    injected = InjectedSerializer(many=True)
    seen_at = serializers.DateTimeField(help_text="Time of the last heartbeat of an agent that offers it.")
    agents = OfferingAgentSerializer(many=True)


class VersionDetailSerializer(VersionSerializer):
    """A version with its parameters."""

    space = ParameterSerializer(many=True)


class FileSerializer(serializers.Serializer[Any]):
    """A version of a component's file that was written in the console."""

    number = serializers.IntegerField(help_text="Counts from 1.")
    sha256 = serializers.CharField(help_text="Hash of the text, hexadecimal.")
    author = serializers.CharField()
    written_at = serializers.DateTimeField()


class WrittenSerializer(FileSerializer):
    """A version with the agents that offer it."""

    agents = OfferingAgentSerializer(many=True, help_text="Empty: it is not installed anywhere.")


class FileDetailSerializer(FileSerializer):
    """A version with its text."""

    name = serializers.CharField()
    text = serializers.CharField()


class ComponentTextSerializer(Input):
    """A component's file that is being written."""

    text = serializers.CharField(trim_whitespace=False, allow_blank=True)


class WriteComponentSerializer(ComponentTextSerializer):
    """A new version of the component that the text names."""

    after = serializers.IntegerField(
        default=0, min_value=0, help_text="Number of the version that was edited; 0: none."
    )


class ProblemSerializer(serializers.Serializer[Any]):
    """An error and its place. Lines and columns count from 1."""

    line = serializers.IntegerField()
    column = serializers.IntegerField()
    length = serializers.IntegerField(help_text="Characters at fault; 0: to the end of the line or further.")
    field = serializers.CharField()
    message = serializers.CharField()


class CheckedSerializer(serializers.Serializer[Any]):
    """The content of a component's file, as far as it can be checked without a cluster."""

    name = serializers.CharField(allow_blank=True)
    parameters = serializers.ListField(child=serializers.CharField())
    applications = serializers.ListField(child=serializers.CharField())
    metrics = serializers.ListField(child=serializers.CharField())
    problems = ProblemSerializer(many=True)
    unseen = serializers.ListField(
        child=serializers.CharField(), help_text="Files and programs that it refers to. The cluster must have them."
    )
    words = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Allowed keys or words at each place; a star stands for any name.",
    )


class ComponentSummarySerializer(serializers.Serializer[Any]):
    """A component."""

    name = serializers.CharField()
    versions = VersionSerializer(many=True, help_text="Newest first; empty: no agent offers it.")
    studies = serializers.IntegerField(help_text="Number of studies that have tuned it.")
    files = WrittenSerializer(many=True, help_text="Versions that were written in the console, newest first.")


class ComponentListSerializer(serializers.Serializer[Any]):
    """All components, by name."""

    components = ComponentSummarySerializer(many=True)


class BestSettingsSerializer(serializers.Serializer[Any]):
    """The best settings that a study has found for an application."""

    application = serializers.CharField(help_text="Empty: the component's first application.")
    study = serializers.CharField()
    state = StateField(StudyState)
    digest = serializers.CharField(help_text="Version that was tuned; empty: the version that the agent had.")
    objective = SummarisedObjectiveSerializer()
    configuration = ConfigurationField()
    context = ConfigurationField(  # type: ignore[assignment]  # the base class has an attribute of this name
        help_text="Context for which alone the configuration is recommended; empty: there is none."
    )
    trials = serializers.IntegerField()
    machine = serializers.CharField(help_text="Processor, kernel and compiler of its last trial; empty: unknown.")
    elsewhere = serializers.BooleanField(
        help_text="True if the agents that offer the component now have last measured it on other machines."
    )
    updated_at = serializers.DateTimeField()


class ComponentDetailSerializer(serializers.Serializer[Any]):
    """A component with its parameters and its best known settings."""

    name = serializers.CharField()
    versions = VersionDetailSerializer(many=True)
    studies = serializers.IntegerField()
    files = WrittenSerializer(many=True, help_text="Versions that were written in the console, newest first.")
    best = BestSettingsSerializer(many=True)


class TranslatedSerializer(serializers.Serializer[Any]):
    """A text in the languages of the console."""

    en = serializers.CharField()
    de = serializers.CharField()


class PackageSerializer(serializers.Serializer[Any]):
    """A package that a component needs."""

    name = serializers.CharField()
    by = serializers.ChoiceField(["apt", "pip"])


class GalleryEntrySerializer(serializers.Serializer[Any]):
    """A system that people run, the study that tunes it, and the gain that was measured."""

    component = serializers.CharField()
    application = serializers.CharField(help_text="Empty: the component's first application.")
    study = serializers.CharField(help_text="Name of the study file in the component's folder.")
    text = serializers.CharField(help_text="The study file.")
    runs = TranslatedSerializer()
    measure = TranslatedSerializer()
    settings = TranslatedSerializer(allow_null=True, help_text="Settings of the gain; null: those of a study.")
    evidence = serializers.ChoiceField(
        [one.value for one in Evidence],
        help_text="proven: by a study; no_gain: a study has found none that is measurable; settings: measured for "
        "chosen settings; unknown: not measured yet.",
    )
    gain = serializers.FloatField(allow_null=True, help_text="Percent by which the measure fell.")
    low = serializers.FloatField(allow_null=True, help_text="Lower end of its 95 % interval; null: a single run.")
    high = serializers.FloatField(allow_null=True)
    minutes = serializers.IntegerField(allow_null=True, help_text="Time of the whole study; null: not measured.")
    packages = PackageSerializer(many=True)


class GallerySerializer(serializers.Serializer[Any]):
    """The systems that people run, with the machine of the measurements."""

    machine = TranslatedSerializer()
    entries = GalleryEntrySerializer(many=True)
