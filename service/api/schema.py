"""What the OpenAPI schema says beside what REST framework's views tell of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.authentication import Authentication
from service.api.errors import CONTENT_TYPE
from service.api.streaming import ACTION as EVENTS_ACTION
from service.api.v1.serializers.problems import FaultSerializer
from service.api.v1.serializers.studies import StudyEventSerializer
from service.api.v1.serializers.tenancy import ChangesSerializer
from service.api.v1.serializers.trials import LogEventSerializer
from service.api.views import View
from service.identity import sessions

Direction: TypeAlias = Literal["request", "response"]
Endpoint: TypeAlias = tuple[str, str, str, Callable[..., Any]]

EVENTS_PATH = "/api/v1/studies/{name}/events"
CHANGES_PATH = "/api/v1/events"
LOG_EVENTS_PATH = "/api/v1/studies/{name}/trials/{number}/events"


class Schema(AutoSchema):
    """Every operation may answer with a problem document."""

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        fault = self._get_response_for_code(  # type: ignore[no-untyped-call]
            FaultSerializer, "default", [CONTENT_TYPE], direction
        )
        return {**super()._get_response_bodies(direction), "default": {**fault, "description": "A problem document."}}


class _Events(View):
    """Stands in the schema for the stream of events, which is no REST framework view."""

    actions = {"GET": EVENTS_ACTION}

    @extend_schema(
        operation_id="watchStudy",
        parameters=[
            OpenApiParameter("name", str, OpenApiParameter.PATH),
            OpenApiParameter("after_revision", int, description="Only what changed since."),
            OpenApiParameter("most", int, description="From the start: of more trials than this only a sample."),
            OpenApiParameter("Last-Event-ID", int, OpenApiParameter.HEADER, description="The same, and goes first."),
        ],
        responses={(200, "text/event-stream"): StudyEventSerializer},
    )
    def get(self, request: Request, name: str) -> Response:
        """A study's changes as server-sent events: `change` with this data, and `deleted` at the end."""
        raise NotImplementedError


class _Changes(View):
    """Stands in the schema for the stream that says which lists have changed."""

    actions = {"GET": EVENTS_ACTION}

    @extend_schema(operation_id="watchTenant", responses={(200, "text/event-stream"): ChangesSerializer})
    def get(self, request: Request) -> Response:
        """That something has changed in the tenant, as server-sent events: `ready`, and `change` with this data."""
        raise NotImplementedError


class _LogEvents(View):
    """Stands in the schema for the stream of what a trial prints."""

    actions = {"GET": EVENTS_ACTION}

    @extend_schema(
        operation_id="watchTrialLog",
        parameters=[
            OpenApiParameter("name", str, OpenApiParameter.PATH),
            OpenApiParameter("number", int, OpenApiParameter.PATH),
        ],
        responses={(200, "text/event-stream"): LogEventSerializer},
    )
    def get(self, request: Request, name: str, number: int) -> Response:
        """What a trial prints as server-sent events: `log` with this data, and `end` when the trial has ended."""
        raise NotImplementedError


def add_events(endpoints: list[Endpoint]) -> list[Endpoint]:
    """drf-spectacular's hook for paths that it does not find by itself."""
    return [
        *endpoints,
        (EVENTS_PATH, EVENTS_PATH, "GET", _Events.as_view()),
        (CHANGES_PATH, CHANGES_PATH, "GET", _Changes.as_view()),
        (LOG_EVENTS_PATH, LOG_EVENTS_PATH, "GET", _LogEvents.as_view()),
    ]


class AuthenticationScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How callers authenticate."""

    target_class = Authentication
    name = ["token", "session"]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, str]]:
        """Both ways to authenticate."""
        return [
            {"type": "http", "scheme": "bearer"},
            {"type": "apiKey", "in": "cookie", "name": sessions.COOKIE_NAME},
        ]
