"""The base of all REST views."""

from __future__ import annotations

import time
from typing import Any, TypeVar, cast

from django.http import HttpRequest, HttpResponseBase
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from service.api.metrics import REQUEST_SECONDS
from service.core.errors import NotFound
from service.tenancy.principal import Principal

_Serializer = TypeVar("_Serializer", bound=serializers.BaseSerializer[Any])


class View(APIView):
    """Translates, calls one action or selector, translates back. Times itself under its route."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Serve the request and measure how long it took, rendering included."""
        started = time.perf_counter()
        response = super().dispatch(request, *args, **kwargs)
        route = request.resolver_match.route if request.resolver_match else "unknown"

        def observe(rendered: Any) -> None:
            REQUEST_SECONDS.labels(request.method or "", route, rendered.status_code).observe(
                time.perf_counter() - started
            )

        cast(Response, response).add_post_render_callback(observe)
        return response

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


def _checked(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
