"""The base of all REST views."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, cast

from django.http import HttpRequest, HttpResponseBase
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from service.api.metrics import REQUEST_SECONDS
from service.core import logcontext
from service.core.errors import NotFound
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

_Serializer = TypeVar("_Serializer", bound=serializers.BaseSerializer[Any])


class View(APIView):
    """Translates, calls one action or selector, translates back. Times itself under its route."""

    # What each method does, for the matrix of permissions. None: anybody may, and nobody is authenticated.
    actions: ClassVar[Mapping[str, Action | None]] = {}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Serve the request and measure how long it took, rendering included."""
        started = time.perf_counter()
        response = super().dispatch(request, *args, **kwargs)
        route = request.resolver_match.route if request.resolver_match else "unknown"

        def observe(rendered: Any) -> None:
            REQUEST_SECONDS.labels(request.method or "", route, rendered.status_code).observe(
                time.perf_counter() - started
            )

        if isinstance(response, Response):
            response.add_post_render_callback(observe)
        else:  # a stream, timed to where it begins
            observe(response)
        return response

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Find out who calls, and refuse what the caller may not do."""
        super().initial(request, *args, **kwargs)
        method = _method(request)
        # What a view does not serve is refused next. OPTIONS tells what it serves.
        if hasattr(self, method.lower()) and method != "OPTIONS":
            action = self.actions[method]
            study = self.study(request)
            logcontext.bind(study=study, trial=self.kwargs.get("number"), agent=self.kwargs.get("agent_id"))
            if action is not None:
                logcontext.bind(tenant=self.principal.tenant_id, actor=self.principal.actor)
                require(self.principal, action, study)

    def get_authenticators(self) -> list[BaseAuthentication]:
        """None where anybody may."""
        open_to_all = self.request is not None and self.actions.get(_method(self.request), ...) is None
        return [] if open_to_all else super().get_authenticators()

    def study(self, request: Request) -> str | None:
        """The name of the study that the request is about: the path's, where it has one."""
        name = self.kwargs.get("name")
        return None if name is None else str(name)

    @property
    def principal(self) -> Principal:
        """Who is calling."""
        return cast(Principal, self.request.user)

    def body(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The request's checked body."""
        return _checked(serializer(data=self.request.data))

    def query(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The request's checked query parameters."""
        return _checked(serializer(data=self.request.query_params))


class NoSuchPath(View):
    """What answers below /api/ where nothing else does."""

    # Not part of the interface.
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse every method."""
        raise NotFound("not_found", f"There is nothing at {request.path}; see /api/v1/schema.")


def _method(request: HttpRequest | Request) -> str:
    return "GET" if request.method == "HEAD" else request.method or ""


def _checked(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
