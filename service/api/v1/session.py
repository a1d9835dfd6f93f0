"""The console's session over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api import authentication
from service.api.v1.serializers.session import SessionSerializer, SignInSerializer
from service.api.views import View
from service.identity.principals import authenticate_bearer
from service.tenancy.permissions import Action


class Session(View):
    """/session"""

    # One comes in without a session, and leaves with one that may be over already.
    actions = {"GET": Action.SESSION_READ, "POST": None, "DELETE": None}

    @extend_schema(operation_id="getSession", responses=SessionSerializer)
    def get(self, request: Request) -> Response:
        """Who is signed in."""
        return Response({"actor": self.principal.actor})

    @extend_schema(operation_id="signIn", auth=[], request=SignInSerializer, responses=SessionSerializer)
    def post(self, request: Request) -> Response:
        """Sign in to the console with the administrator's token: sets a cookie."""
        authentication.check_same_origin(request._request)
        principal = authenticate_bearer(self.body(SignInSerializer)["token"].strip())
        response = Response({"actor": principal.actor})
        authentication.start_session(request._request, response, principal)
        return response

    @extend_schema(operation_id="signOut", auth=[], responses={204: None})
    def delete(self, request: Request) -> Response:
        """Sign out: takes the cookie away."""
        authentication.check_same_origin(request._request)
        response = Response(status=204)
        authentication.end_session(response)
        return response
