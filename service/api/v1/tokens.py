"""Members, API tokens, enrolments of agents and revocations over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.tokens import (
    ApiTokenListSerializer,
    ApiTokenQuery,
    ApiTokenSerializer,
    CreateApiTokenSerializer,
    CreatedApiTokenSerializer,
    CreateEnrolmentSerializer,
    EnrolmentSerializer,
    MemberListSerializer,
    RevokeAccessSerializer,
    RevokedSerializer,
)
from service.api.views import View
from service.core.errors import InvalidInput
from service.identity import enrolment, memberships, principals, revocations, tokens
from service.tenancy.permissions import Action

# Browsers and proxies must not store a secret.
_NOT_KEPT = {"Cache-Control": "no-store"}


class ApiTokenList(View):
    """/tokens"""

    actions = {"GET": Action.TOKEN_OWN, "POST": Action.TOKEN_OWN}

    @extend_schema(operation_id="listApiTokens", parameters=[ApiTokenQuery], responses=ApiTokenListSerializer)
    def get(self, request: Request) -> Response:
        """List the caller's API tokens, newest first. An administrator may list the tokens of all members."""
        found = tokens.list_tokens(self.principal, everyone=self.query(ApiTokenQuery)["everyone"])
        return Response(ApiTokenListSerializer({"tokens": found}).data)

    @extend_schema(
        operation_id="createApiToken", request=CreateApiTokenSerializer, responses={201: CreatedApiTokenSerializer}
    )
    def post(self, request: Request) -> Response:
        """Create an API token. Only this answer contains its secret."""
        token, secret = tokens.create(self.principal, **self.body(CreateApiTokenSerializer))
        return Response({**ApiTokenSerializer(token).data, "secret": secret}, status=201, headers=_NOT_KEPT)


class ApiTokenView(View):
    """/tokens/ID"""

    actions = {"DELETE": Action.TOKEN_OWN}

    @extend_schema(operation_id="revokeApiToken", responses={204: None})
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke an API token by its id or by the beginning of its secret. An administrator may revoke any token."""
        tokens.revoke(self.principal, token_id)
        principals.forget()
        return Response(status=204)


class MemberList(View):
    """/members"""

    actions = {"GET": Action.MEMBER_READ}

    @extend_schema(operation_id="listMembers", responses=MemberListSerializer)
    def get(self, request: Request) -> Response:
        """List the people of the identity provider who have used the tenant, with the last known role of each."""
        return Response(MemberListSerializer({"members": memberships.members(self.principal)}).data)


class EnrolmentList(View):
    """/enrolments"""

    actions = {"POST": Action.AGENT_ENROL}

    @extend_schema(
        operation_id="createEnrolment", request=CreateEnrolmentSerializer, responses={201: EnrolmentSerializer}
    )
    def post(self, request: Request) -> Response:
        """Create a token that enrols one agent once: `trimtab-agent run --enrol-file FILE`."""
        made, secret = enrolment.create(self.principal, minutes=self.body(CreateEnrolmentSerializer)["minutes"])
        described = EnrolmentSerializer({"secret": secret, "expires_at": made.expires_at}).data
        return Response(described, status=201, headers=_NOT_KEPT)


class AgentCredentials(View):
    """/agents/ID/credentials"""

    actions = {"DELETE": Action.AGENT_ENROL}

    @extend_schema(operation_id="revokeAgent", responses={204: None})
    def delete(self, request: Request, agent_id: str) -> Response:
        """Revoke every credential of an agent. It must then be enrolled again."""
        enrolment.revoke(self.principal, agent_id)
        principals.forget()
        return Response(status=204)


class RevocationList(View):
    """/revocations"""

    actions = {"POST": Action.ACCESS_REVOKE}

    @extend_schema(operation_id="revokeAccess", request=RevokeAccessSerializer, responses=RevokedSerializer)
    def post(self, request: Request) -> Response:
        """Revoke the access of a person at once: all present tokens and sessions, and all API tokens.

        A person who may sign in at the identity provider can sign in again, so first disable the person there or remove
        the person from the tenant's groups. A session that is named is revoked permanently.
        """
        body = self.body(RevokeAccessSerializer)
        if len(body) != 1:
            raise InvalidInput("person", body.get("person"), "either `person` or `session`")
        count = 0
        if "session" in body:
            revocations.revoke_session(self.principal, body["session"])
        else:
            count = revocations.revoke_person(self.principal, body["person"])
        principals.forget()
        return Response(RevokedSerializer({"tokens": count}).data)
