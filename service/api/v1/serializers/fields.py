"""Fields and base classes that several serializers share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from service.core.reasons import Reason, data_of

# The allowed values for the message of InvalidInput ("Use ..."), in place of REST framework's sentences.
_WHOLE = "a whole number"
_ALLOWED: Mapping[type[serializers.Field[Any, Any, Any, Any]], Mapping[str, str]] = {
    serializers.Field: {"required": "a value", "null": "a value"},
    serializers.BooleanField: {"invalid": "true or false"},
    serializers.CharField: {
        "invalid": "a text",
        "blank": "a text that is not empty",
        "max_length": "at most {max_length} characters",
        "min_length": "at least {min_length} characters",
    },
    serializers.UUIDField: {"invalid": "a UUID"},
    serializers.IntegerField: {
        "invalid": _WHOLE,
        "max_string_length": _WHOLE,
        "max_value": "at most {max_value}",
        "min_value": "at least {min_value}",
    },
    serializers.FloatField: {
        "invalid": "a number",
        "max_string_length": "a number",
        "max_value": "at most {max_value}",
        "min_value": "at least {min_value}",
    },
    serializers.DateTimeField: {"invalid": "a time such as 2026-01-31T12:00:00Z", "date": "a date with a time of day"},
    serializers.ListField: {
        "not_a_list": "a list",
        "empty": "a list that is not empty",
        "max_length": "at most {max_length} items",
        "min_length": "at least {min_length} items",
    },
    serializers.DictField: {"not_a_dict": "an object", "empty": "an object that is not empty"},
    serializers.Serializer: {"invalid": "an object"},
}
for _field, _messages in _ALLOWED.items():
    _field.default_error_messages = {**_field.default_error_messages, **_messages}

_SCALAR = {"oneOf": [{"type": "number"}, {"type": "string"}, {"type": "boolean"}]}


# The items of a list in a body or a query. Many lists have smaller bounds in the code that uses them.
MOST_ITEMS = 1000


class Input(serializers.Serializer[Any]):
    """The body or the query parameters of a request. An unknown name is an error, and so is a list that is too long."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the checked values."""
        if isinstance(data, Mapping):
            # One is enough for an error, and a request may have a hundred thousand.
            unknown = next((name for name in data if name not in self.fields), None)
            if unknown is not None:
                known = ", ".join(self.fields) or "none"
                raise serializers.ValidationError({unknown: f"one of these names: {known}"})
            for name, field in self.fields.items():
                # REST framework would look at each item before it counts them.
                if isinstance(field, serializers.ListField | serializers.ListSerializer):
                    given = data.get(name)
                    if isinstance(given, list) and len(given) > MOST_ITEMS:
                        raise serializers.ValidationError({name: f"at most {MOST_ITEMS} items"})
        return super().to_internal_value(data)


@extend_schema_field(OpenApiTypes.OBJECT)
class ObjectField(serializers.JSONField):
    """A JSON object that is not changed."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the object. Raises ValidationError for anything else."""
        if not isinstance(data, dict):
            raise serializers.ValidationError("an object")
        return super().to_internal_value(data)


class ReasonDataSerializer(serializers.Serializer[Any]):
    """The code of a reason, and the values that complete it. They replace the first line of its text."""

    code = serializers.CharField(help_text="An interface, as error codes are. A later version may have further codes.")
    values = ObjectField()


class VerdictConditionSerializer(serializers.Serializer[Any]):
    """A condition under which the numbers of a verdict hold, as a phrase with its code."""

    text = serializers.CharField(help_text='"under injected contention of the file server".')
    code = serializers.CharField(help_text="load, injected, limit, machine or machines; a later version may have more.")
    values = ObjectField(help_text="Values that complete the code.")

    def to_representation(self, found: Any) -> dict[str, Any]:
        """Return a reason, or one that was stored, as JSON."""
        return {"text": str(found), **found.data} if isinstance(found, Reason) else dict(found)


# An annotation in place of a subclass, whose schema would be an object that is never null.
@extend_schema_field(ReasonDataSerializer(allow_null=True))
class ReasonDataField(serializers.Field[Any, Any, Any, Any]):
    """Code and values of the sentence in another field of the same object; null: it has no code.

    A stored sentence has them in the column of its name with `_data`. `source`: an attribute that is the object.
    """

    def __init__(self, text: str, source: str = "*") -> None:
        super().__init__(
            source=source,
            read_only=True,
            help_text=f"Code and values of `{text}`; null: a person or a program wrote it.",
        )
        self._text = text

    def to_representation(self, found: Any) -> Any:
        """Return them as JSON."""
        text = getattr(found, self._text)
        return text.data if isinstance(text, Reason) else data_of(text, getattr(found, f"{self._text}_data", None))


@extend_schema_field({"type": "object", "additionalProperties": _SCALAR})
class ConfigurationField(ObjectField):
    """Values by parameter. The study's space checks them."""


@extend_schema_field({"type": "object", "additionalProperties": {"type": "number", "format": "double"}})
class MetricsField(ObjectField):
    """Numbers by metric. The study's objectives check them."""


@extend_schema_field({"type": "array", "items": _SCALAR})
class ScalarsField(serializers.JSONField):
    """Values of a parameter."""


@extend_schema_field(_SCALAR)
class ScalarField(serializers.JSONField):
    """One value of a parameter."""


class StateField(serializers.ChoiceField):
    """One state of an enumeration. The error names all states."""

    def __init__(self, states: type[StrEnum], **kwargs: Any) -> None:
        choices = [(state.value, state.value) for state in states]
        allowed = ", ".join(states)
        super().__init__(choices, error_messages={"invalid_choice": allowed}, **kwargs)


class WhereField(serializers.ListField):
    """Conditions on the columns of a list, all of which hold."""

    def __init__(self, columns: Iterable[str], examples: str, **kwargs: Any) -> None:
        super().__init__(
            child=serializers.CharField(max_length=1000),
            required=False,
            default=list,
            help_text=f"Conditions that all hold: {examples}. Columns are {', '.join(columns)}. Operators are =, !=, <,"
            " <=, > and >=, and ~ for a text that contains the value.",
            **kwargs,
        )


class PageQuery(Input):
    """The page of a list."""

    page_size = serializers.IntegerField(required=False, default=0, help_text="Up to 1000; 0 for 100.")
    page_token = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="The next_page_token of the previous page."
    )
