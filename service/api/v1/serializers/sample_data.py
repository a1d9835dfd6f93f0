"""Sample data."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class SampleDataSerializer(serializers.Serializer[Any]):
    """The studies with sample data of the tenant."""

    studies = serializers.ListField(child=serializers.CharField(), help_text="Names; empty: there is no sample data.")
    running = serializers.BooleanField(help_text="True while the service measures.")
