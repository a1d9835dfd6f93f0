"""Members, API tokens, agents' enrolments and revocations over REST."""

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

# Neither a browser nor a proxy is to keep a secret.
_NOT_KEPT = {"Cache-Control": "no-store"}


class ApiTokenList(View):
    """/tokens"""

    actions = {"GET": Action.TOKEN_OWN, "POST": Action.TOKEN_OWN}

    @extend_schema(operation_id="listApiTokens", parameters=[ApiTokenQuery], responses=ApiTokenListSerializer)
    def get(self, request: Request) -> Response:
        """One's own API tokens, newest first; an administrator may see everybody's."""
        found = tokens.list_tokens(self.principal, everyone=self.query(ApiTokenQuery)["everyone"])
        return Response(ApiTokenListSerializer({"tokens": found}).data)

    @extend_schema(
        operation_id="createApiToken", request=CreateApiTokenSerializer, responses={201: CreatedApiTokenSerializer}
    )
    def post(self, request: Request) -> Response:
        """A new API token. The answer has its secret, which is shown nowhere else."""
        token, secret = tokens.create(self.principal, **self.body(CreateApiTokenSerializer))
        return Response({**ApiTokenSerializer(token).data, "secret": secret}, status=201, headers=_NOT_KEPT)


class ApiTokenView(View):
    """/tokens/ID"""

    actions = {"DELETE": Action.TOKEN_OWN}

    @extend_schema(operation_id="revokeApiToken", responses={204: None})
    def delete(self, request: Request, token_id: str) -> Response:
        """End one's own API token, or, as an administrator, anybody's: by its id, or by how its secret begins."""
        tokens.revoke(self.principal, token_id)
        principals.forget()
        return Response(status=204)


class MemberList(View):
    """/members"""

    actions = {"GET": Action.MEMBER_READ}

    @extend_schema(operation_id="listMembers", responses=MemberListSerializer)
    def get(self, request: Request) -> Response:
        """Who of the identity provider's people has come to the tenant, with the role that each was last seen with."""
        return Response(MemberListSerializer({"members": memberships.members(self.principal)}).data)


class EnrolmentList(View):
    """/enrolments"""

    actions = {"POST": Action.AGENT_ENROL}

    @extend_schema(
        operation_id="createEnrolment", request=CreateEnrolmentSerializer, responses={201: EnrolmentSerializer}
    )
    def post(self, request: Request) -> Response:
        """A token with which one agent enrols, once: `trimtab-agent run --enrol TOKEN`."""
        made, secret = enrolment.create(self.principal, minutes=self.body(CreateEnrolmentSerializer)["minutes"])
        described = EnrolmentSerializer({"secret": secret, "expires_at": made.expires_at}).data
        return Response(described, status=201, headers=_NOT_KEPT)


class AgentCredentials(View):
    """/agents/ID/credentials"""

    actions = {"DELETE": Action.AGENT_ENROL}

    @extend_schema(operation_id="revokeAgent", responses={204: None})
    def delete(self, request: Request, agent_id: str) -> Response:
        """End every credential of an agent: it has to be enrolled anew."""
        enrolment.revoke(self.principal, agent_id)
        principals.forget()
        return Response(status=204)


class RevocationList(View):
    """/revocations"""

    actions = {"POST": Action.ACCESS_REVOKE}

    @extend_schema(operation_id="revokeAccess", request=RevokeAccessSerializer, responses=RevokedSerializer)
    def post(self, request: Request) -> Response:
        """Put a person out at once: tokens and sessions from before now, and API tokens, count no longer.

        Whoever may sign in at the identity provider may come again: disable the person there, or take him out of the
        tenant's groups, before. A session that is named is out for good.
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
