"""API tokens, enrolments, revocations."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input
from service.identity import enrolment, tokens
from service.tenancy.principal import Scope


class ApiTokenSerializer(serializers.Serializer[Any]):
    """An API token, without its secret."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    hint = serializers.CharField(help_text="Beginning of the secret.")
    owner = serializers.CharField()
    role = serializers.CharField(help_text="Highest role of the token: the owner's role at its creation.")
    scopes = serializers.ListField(child=serializers.CharField())
    study = serializers.CharField(allow_null=True, help_text="The only study that it is valid for; null: all studies.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="Precise to the minute.")
    sign_in_by = serializers.DateTimeField(
        allow_null=True,
        help_text="Until when the owner must sign in. From then on the token is suspended until the owner signs in;"
        " null: without a limit.",
    )


class CreatedApiTokenSerializer(ApiTokenSerializer):
    """A new API token with its secret, which is shown only here."""

    secret = serializers.CharField()


class ApiTokenListSerializer(serializers.Serializer[Any]):
    """Valid API tokens, newest first."""

    tokens = ApiTokenSerializer(many=True)


class ApiTokenQuery(Input):
    """The owners of the tokens."""

    everyone = serializers.BooleanField(required=False, default=False, help_text="Tokens of all members of the tenant.")


class CreateApiTokenSerializer(Input):
    """A token to create."""

    name = serializers.CharField(max_length=200)
    scopes = serializers.ListField(
        child=serializers.CharField(), help_text=f"One or more of {', '.join(Scope)}, as far as the role allows."
    )
    study = serializers.CharField(required=False, default=None, allow_null=True, max_length=200)
    days = serializers.IntegerField(
        required=False, default=tokens.DEFAULT_DAYS, help_text=f"Lifetime in days: 1 to {tokens.LONGEST_DAYS}."
    )
    request_id = serializers.CharField(required=False, default="", allow_blank=True, max_length=100)


class MemberSerializer(serializers.Serializer[Any]):
    """A person or a machine of the identity provider."""

    subject = serializers.CharField(help_text="The identity provider's identifier, which never changes.")
    name = serializers.CharField()
    role = serializers.CharField()
    as_of = serializers.DateTimeField(help_text="Time of issue of the token that stated the role.")


class MemberListSerializer(serializers.Serializer[Any]):
    """Members of a tenant, by name."""

    members = MemberSerializer(many=True)


class CreateEnrolmentSerializer(Input):
    """A right to enrol an agent."""

    minutes = serializers.IntegerField(
        required=False,
        default=enrolment.DEFAULT_MINUTES,
        help_text=f"Lifetime in minutes: 1 to {enrolment.LONGEST_MINUTES}.",
    )


class EnrolmentSerializer(serializers.Serializer[Any]):
    """A token that enrols one agent once."""

    secret = serializers.CharField()
    expires_at = serializers.DateTimeField()


class RevokeAccessSerializer(Input):
    """The person or the session whose access is revoked: one of the two."""

    person = serializers.CharField(
        required=False, max_length=200, help_text="A name, or the identity provider's identifier."
    )
    session = serializers.CharField(required=False, max_length=200, help_text="The identity provider's session.")


class RevokedSerializer(serializers.Serializer[Any]):
    """The result of a revocation."""

    tokens = serializers.IntegerField(help_text="Number of revoked API tokens.")
