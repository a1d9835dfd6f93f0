"""The console's session over REST."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api import authentication
from service.api.v1.serializers.session import SessionSerializer, SignInOptionsSerializer, SignInSerializer
from service.api.views import View
from service.identity import sign_ins
from service.identity.principals import tenant_name
from service.identity.sign_in import sign_in
from service.tenancy.permissions import Action, may
from service.tenancy.principal import Principal


class SignInOptions(View):
    """/sign-in"""

    actions = {"GET": None}

    @extend_schema(operation_id="getSignIn", auth=[], responses=SignInOptionsSerializer)
    def get(self, request: Request) -> Response:
        """Get the ways to sign in. No token is needed."""
        return Response(SignInOptionsSerializer(sign_in(request.META.get("REMOTE_ADDR", ""))).data)


class Session(View):
    """/session"""

    # Sign-in has no session yet, and sign-out may have one that has ended.
    actions = {"GET": Action.SESSION_READ, "POST": None, "DELETE": None}

    @extend_schema(operation_id="getSession", responses=SessionSerializer)
    def get(self, request: Request) -> Response:
        """Get the person who is signed in."""
        return Response(_describe(self.principal))

    @extend_schema(operation_id="signIn", auth=[], request=SignInSerializer, responses=SessionSerializer)
    def post(self, request: Request) -> Response:
        """Sign in to the console; this sets a cookie. With a token of the identity provider, it expires with the token.

        API tokens and credentials of agents are refused, because they are for programs.
        """
        authentication.check_same_origin(request._request)
        body = self.body(SignInSerializer)
        address, cookie = authentication.address_of(request._request), authentication.cookie_of(request._request)
        principal, proof = sign_ins.by_token(body["token"].strip(), body["tenant"], address, cookie)
        response = Response(_describe(principal))
        authentication.start_session(request._request, response, principal, proof)
        return response

    @extend_schema(operation_id="signOut", auth=[], responses={204: None})
    def delete(self, request: Request) -> Response:
        """Sign out; this ends the session and deletes the cookie."""
        authentication.check_same_origin(request._request)
        response = Response(status=204)
        authentication.end_session(request._request, response)
        return response


def _describe(principal: Principal) -> dict[str, object]:
    described = SessionSerializer(
        {
            "actor": principal.actor,
            "tenant": tenant_name(principal),
            "role": principal.role,
            "scopes": sorted(principal.scopes),
            "actions": [str(action) for action in Action if may(principal, action, principal.study)],
            "study": principal.study,
            "grpc_port": settings.TRIMTAB_GRPC_PORT,
        }
    )
    return dict(described.data)
