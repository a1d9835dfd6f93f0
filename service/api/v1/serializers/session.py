"""Console sessions."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input


class SessionSerializer(serializers.Serializer[Any]):
    """Who is signed in."""

    actor = serializers.CharField()


class SignInSerializer(Input):
    """A sign-in."""

    token = serializers.CharField()
