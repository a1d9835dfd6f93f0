"""Specs of studies and problem documents. These serializers document shapes; they check nothing."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ObjectField, ScalarField, ScalarsField
from service.studies.problem_keys import PARAMETER
from service.studies.spec_keys import Key, Record, record_of
from service.studies.specs import StudySpec

_FIELDS: dict[str, type[serializers.Field[Any, Any, Any, Any]]] = {
    "text": serializers.CharField,
    "integer": serializers.IntegerField,
    "number": serializers.FloatField,
    "time": serializers.FloatField,
    "boolean": serializers.BooleanField,
    "mapping": ObjectField,
    "value": ScalarField,
    "values": ScalarsField,
    "approval": ObjectField,
    "stages": ScalarsField,
}
_ITEMS: dict[str, type[serializers.Field[Any, Any, Any, Any]]] = {
    "texts": serializers.CharField,
    "integers": serializers.IntegerField,
}
_LISTS = ("records", "objectives", "policies")
_made: dict[str, type[serializers.Serializer[Any]]] = {}


def serializer_of(record: Record) -> type[serializers.Serializer[Any]]:
    """Return the serializer of a record, with the words of its keys as help texts."""
    if record.name not in _made:
        fields = {one.name: _field(one) for one in record.keys}
        name = f"{record.name}Serializer"
        _made[record.name] = type(name, (serializers.Serializer,), {"__doc__": record.words, **fields})
    return _made[record.name]


def _field(one: Key) -> serializers.Field[Any, Any, Any, Any]:
    options: dict[str, Any] = {} if one.required else {"required": False}
    if one.nullable:
        options["allow_null"] = True
    if one.words:
        options["help_text"] = f"{one.words} {one.note}".rstrip()
    kind = one.kind
    if kind.record is not None:
        nested: Any = serializer_of(kind.record)
        return nested(**options, many=True) if kind.name in _LISTS else nested(**options)  # type: ignore[no-any-return]
    if kind.choices:
        return serializers.ChoiceField(kind.choices, **options)
    if kind.name in _ITEMS:
        return serializers.ListField(child=_ITEMS[kind.name](), **options)
    return _FIELDS[kind.name](**options)


ParameterSerializer = serializer_of(PARAMETER)
StudySpecSerializer = serializer_of(record_of(StudySpec))


class FaultSerializer(serializers.Serializer[Any]):
    """An error as a problem document (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="Message for people.")
    code = serializers.CharField(help_text="Stable code for programs.")
    retryable = serializers.BooleanField(help_text="Whether the same request may succeed later.")
    data = ObjectField(  # type: ignore[assignment]  # the base class has an attribute of this name
        help_text="For invalid input: field, value and allowed."
    )
    docs = serializers.CharField(
        required=False, help_text="Address of the documentation's page about the error, below that of the console."
    )
    trace = serializers.CharField(required=False, help_text="The id of the request's trace, if traces are on.")
