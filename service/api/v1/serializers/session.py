"""Console sessions and ways to sign in."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input


class SessionSerializer(serializers.Serializer[Any]):
    """The person who is signed in, with role and rights."""

    actor = serializers.CharField()
    tenant = serializers.CharField(help_text="Empty for an operator who is not a member of a tenant.")
    role = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    actions = serializers.ListField(
        child=serializers.CharField(),
        help_text="Actions that the caller may do, as in the permission matrix: study.create.",
    )
    study = serializers.CharField(
        allow_null=True, help_text="The only study that the token is valid for; null: all studies."
    )
    grpc_port = serializers.IntegerField(help_text="Port for agents and the SDK on this host; 0: the console's port.")


class SignInSerializer(Input):
    """A sign-in."""

    token = serializers.CharField(help_text="The administrator's token, or an access token of the identity provider.")
    tenant = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Needed by members of several tenants."
    )


class ProviderSerializer(serializers.Serializer[Any]):
    """An OpenID Connect issuer."""

    issuer = serializers.CharField()
    client_id = serializers.CharField(source="console_client", help_text="Public client of the console.")


class SignInOptionsSerializer(serializers.Serializer[Any]):
    """The ways to sign in."""

    token = serializers.BooleanField(help_text="Whether the administrator's token is accepted.")
    provider = ProviderSerializer(allow_null=True, help_text="Identity provider; null: there is none.")
    token_file = serializers.CharField(
        help_text="Path of the file with the administrator's token; empty for callers on another machine."
    )
