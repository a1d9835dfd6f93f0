"""The base of all REST views."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, TypeVar, cast

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponseBase
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from service.api import errors
from service.api.authentication import meant
from service.api.metrics import REQUEST_SECONDS
from service.api.turns import Turns
from service.core.errors import NotFound
from service.platform import log_context, tracing
from service.tenancy import access
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

_turns = Turns(settings.TRIMTAB_HTTP_REQUESTS_PER_TENANT)
METHODS = tuple(name.upper() for name in APIView.http_method_names)

_Serializer = TypeVar("_Serializer", bound=serializers.BaseSerializer[Any])


class View(APIView):
    """A view that translates the request, calls one action or selector, and translates the result.

    It measures its time by route.
    """

    # The action of each method, for the matrix of permissions. None: anybody may call it without a token.
    actions: ClassVar[Mapping[str, Action | None]] = {}
    # When the request arrived, in nanoseconds since 1970, and what ends its span.
    _began = 0
    _end: tracing.End | None = None
    # Holds the turn of the request's tenant.
    _turn: ExitStack

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Serve the request and measure its time, including the rendering."""
        started = time.perf_counter()
        self._began = time.time_ns()

        def respond() -> HttpResponseBase:
            response = super(View, self).dispatch(request, *args, **kwargs)
            if isinstance(response, Response):
                response.render()
            return response

        with ExitStack() as turn:
            self._turn = turn
            try:
                response = access.limited(settings.TRIMTAB_REQUEST_CPU_SECONDS, respond)
            except Exception as error:  # noqa: BLE001 - of the deadline, or of an answer that cannot be rendered
                response = errors.respond(error)
        route = _route(request)

        def observe(rendered: Any) -> None:
            method = request.method if request.method in METHODS else "other"
            REQUEST_SECONDS.labels(method, route, rendered.status_code).observe(time.perf_counter() - started)
            if self._end is not None:
                self._end(rendered.status_code >= 500, {"http.response.status_code": rendered.status_code})

        if isinstance(response, Response):
            response.add_post_render_callback(observe)
        else:  # a stream is timed until it begins
            observe(response)
        return response

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate the caller and refuse an action that the caller may not do."""
        super().initial(request, *args, **kwargs)
        method = _method(request)
        # A method that the view does not have is refused later. OPTIONS lists the methods.
        if method in METHODS and hasattr(self, method.lower()) and method != "OPTIONS":
            action = self.actions[method]
            study = self.study(request)
            log_context.bind(study=study, trial=self.kwargs.get("number"), agent=self.kwargs.get("agent_id"))
            if action is not None:
                if study is not None:
                    request.user = cast(Any, meant(self.principal, request))
                log_context.bind(tenant=self.principal.tenant_id, actor=self.principal.actor)
                self._trace(request)
                require(self.principal, action, study)
                # A request that waits for its turn needs no connection to the database.
                self._turn.enter_context(_turns.taken(self.principal.tenant_id, connection.close))

    def _trace(self, request: Request) -> None:
        """Begin the span of the request, in the trace of its caller, which is authenticated."""
        self._end = tracing.serve(
            f"{request.method} /{_route(request)}", request.headers.get(tracing.HEADER, ""), self._began
        )

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return the authenticators; none if anybody may call the method."""
        open_to_all = self.request is not None and self.actions.get(_method(self.request), ...) is None
        return [] if open_to_all else super().get_authenticators()

    def study(self, request: Request) -> str | None:
        """Return the name of the request's study, from the path, or None."""
        name = self.kwargs.get("name")
        return None if name is None else str(name)

    @property
    def principal(self) -> Principal:
        """Return the caller."""
        return cast(Principal, self.request.user)

    def body(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """Return the checked body of the request."""
        return _checked(serializer(data=self.request.data))

    def query(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """Return the checked query parameters of the request."""
        return _checked(serializer(data=self.request.query_params))


class NoSuchPath(View):
    """The answer to unknown paths below /api/."""

    # Not part of the interface.
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse every method."""
        raise NotFound("not_found", f"There is no resource at {request.path}. See /api/v1/schema.")


def _route(request: HttpRequest | Request) -> str:
    return request.resolver_match.route if request.resolver_match else "unknown"


def _method(request: HttpRequest | Request) -> str:
    return "GET" if request.method == "HEAD" else request.method or ""


def _checked(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
