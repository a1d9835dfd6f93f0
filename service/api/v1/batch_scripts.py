"""Batch scripts of users over REST. Nothing of them is stored."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.fields import Input
from service.api.views import View
from service.tenancy.permissions import Action
from trimtab_components import batch_places

KINDS = ("env", "option", "argument")


class BatchScriptSerializer(Input):
    """A batch script, and the variables that should come from the environment."""

    text = serializers.CharField(trim_whitespace=False, allow_blank=True, max_length=batch_places.LONGEST)
    variables = serializers.ListField(child=serializers.CharField(max_length=1000), required=False, default=list)


class PlaceSerializer(serializers.Serializer[Any]):
    """A value in the script that could be tuned."""

    name = serializers.CharField(help_text="A name for the parameter.")
    kind = serializers.ChoiceField(KINDS, help_text="How a value reaches the script.")
    target = serializers.CharField(help_text="The variable, the option without dashes, or the argument's number.")
    value = serializers.CharField(help_text="The present value; empty if the script does not say.")
    line = serializers.IntegerField()
    fixed = serializers.BooleanField(
        help_text="Whether the script sets the variable itself, so that a value from outside has no effect."
    )


class ReadScriptSerializer(serializers.Serializer[Any]):
    """The values that were found in a batch script."""

    places = PlaceSerializer(many=True)
    text = serializers.CharField(help_text="The script in which the named variables come from the environment.")


class BatchScriptRead(View):
    """/batch-scripts"""

    actions = {"POST": Action.AGENT_READ}

    @extend_schema(operation_id="readBatchScript", request=BatchScriptSerializer, responses=ReadScriptSerializer)
    def post(self, request: Request) -> Response:
        """Find the values in a batch script that could be tuned. Nothing is stored."""
        body = self.body(BatchScriptSerializer)
        places = batch_places.find(body["text"])
        text = batch_places.opened(body["text"], body["variables"])
        return Response(ReadScriptSerializer({"places": places, "text": text}).data)
