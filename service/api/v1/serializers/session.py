"""Console sessions, and how people sign in."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input


class SessionSerializer(serializers.Serializer[Any]):
    """Who is signed in, and as what."""

    actor = serializers.CharField()
    tenant = serializers.CharField(help_text="Empty for an operator who is a member of none.")
    role = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    actions = serializers.ListField(
        child=serializers.CharField(), help_text="What the caller may do, as in the matrix of roles: study.create."
    )
    study = serializers.CharField(allow_null=True, help_text="The only study that the token is good for.")
    grpc_port = serializers.IntegerField(
        help_text="Where agents and the SDK reach this host; 0: at the same port as the console."
    )


class SignInSerializer(Input):
    """A sign-in."""

    token = serializers.CharField(help_text="The administrator's token, or an access token of the identity provider.")
    tenant = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Which one is meant, for members of several."
    )


class ProviderSerializer(serializers.Serializer[Any]):
    """An OpenID Connect issuer."""

    issuer = serializers.CharField()
    client_id = serializers.CharField(source="console_client", help_text="The console's public client there.")


class SignInOptionsSerializer(serializers.Serializer[Any]):
    """How people sign in."""

    token = serializers.BooleanField(help_text="With the administrator's token.")
    provider = ProviderSerializer(allow_null=True, help_text="At an identity provider.")
