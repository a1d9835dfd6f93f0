"""Settings in the forms in which programs take them."""

from __future__ import annotations

import json
from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input, ObjectField
from trimtab_components.formats import Format


class SettingsQuery(Input):
    """The form of the settings, and whose they are."""

    format = serializers.ChoiceField(choices=[str(one) for one in Format])
    trial = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The number of a trial whose values are meant; without it those that the study recommends.",
    )
    context = serializers.ListField(  # type: ignore[assignment]  # the base class has an attribute of this name
        child=serializers.CharField(max_length=1000),
        required=False,
        default=list,
        help_text="NAME=VALUE of each context variable of a study that has some.",
    )

    def validate_context(self, given: list[str]) -> dict[str, object]:
        """Return the values by name."""
        found: dict[str, object] = {}
        for text in given:
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise serializers.ValidationError("NAME=VALUE such as load=high")
            try:
                plain = json.loads(value)
            except (ValueError, RecursionError):
                plain = value
            found[name] = plain if isinstance(plain, bool | int | float) else value
        return found


class FileTextSerializer(serializers.Serializer[Any]):
    """A file that the component renders."""

    name = serializers.CharField(help_text="Its path in the work folder of a trial.")
    text = serializers.CharField()


class SettingsSerializer(serializers.Serializer[Any]):
    """Settings in one form."""

    text = serializers.CharField(help_text="The settings; empty for a component with several templates.")
    files = FileTextSerializer(many=True, help_text="The rendered templates, with the form template.")
    notes = serializers.ListField(child=serializers.CharField(), help_text="Sentences for people.")
    params = ObjectField(help_text="The values.")
    by_component = serializers.BooleanField(
        help_text="Whether it is known how values reach the program. Without that, each has the name of its parameter."
    )
