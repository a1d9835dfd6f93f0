"""Additions to the OpenAPI schema for what drf-spectacular does not find in the views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.authentication import STUDY_HEADER, Authentication
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
STUDY_PATH = "/api/v1/studies/{name}"
STUDY_UID = OpenApiParameter(
    STUDY_HEADER,
    str,
    OpenApiParameter.HEADER,
    description="The `uid` of the study that is meant. If another study has its name by now, the answer is 404"
    " `study_replaced`.",
)


class Schema(AutoSchema):
    """The schema of a view.

    It adds a problem document to the answers of every operation, and a header to the requests about a study.
    """

    def get_override_parameters(self) -> Any:
        """Return the header that every request about a study may have."""
        own = super().get_override_parameters()
        return [*own, STUDY_UID] if self.path.startswith(STUDY_PATH) else own

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        fault = self._get_response_for_code(  # type: ignore[no-untyped-call]
            FaultSerializer, "default", [CONTENT_TYPE], direction
        )
        return {**super()._get_response_bodies(direction), "default": {**fault, "description": "A problem document."}}


class _Events(View):
    """A placeholder in the schema for the event stream of a study, which is no REST framework view."""

    actions = {"GET": EVENTS_ACTION}

    @extend_schema(
        operation_id="watchStudy",
        parameters=[
            OpenApiParameter("name", str, OpenApiParameter.PATH),
            OpenApiParameter("after_revision", int, description="Only changes after this revision."),
            OpenApiParameter("most", int, description="With more trials, begin with a sample of this size."),
            OpenApiParameter("Last-Event-ID", int, OpenApiParameter.HEADER, description="Overrides after_revision."),
        ],
        responses={(200, "text/event-stream"): StudyEventSerializer},
    )
    def get(self, request: Request, name: str) -> Response:
        """Stream the changes of a study as server-sent events: `change` with this data, and `deleted` at the end."""
        raise NotImplementedError


class _Changes(View):
    """A placeholder in the schema for the stream of changed lists."""

    actions = {"GET": EVENTS_ACTION}

    @extend_schema(operation_id="watchTenant", responses={(200, "text/event-stream"): ChangesSerializer})
    def get(self, request: Request) -> Response:
        """Stream which lists of the tenant change, as server-sent events: `ready`, and `change` with this data."""
        raise NotImplementedError


class _LogEvents(View):
    """A placeholder in the schema for the stream of a trial's log."""

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
        """Stream the log of a trial as server-sent events: `log` with this data, and `end` when the trial has ended."""
        raise NotImplementedError


def add_events(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Return the endpoints with the streams added. This is a hook of drf-spectacular."""
    return [
        *endpoints,
        (EVENTS_PATH, EVENTS_PATH, "GET", _Events.as_view()),
        (CHANGES_PATH, CHANGES_PATH, "GET", _Changes.as_view()),
        (LOG_EVENTS_PATH, LOG_EVENTS_PATH, "GET", _LogEvents.as_view()),
    ]


class AuthenticationScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The authentication of callers in the schema."""

    target_class = Authentication
    name = ["token", "session"]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, str]]:
        """Return both ways to authenticate."""
        return [
            {"type": "http", "scheme": "bearer"},
            {"type": "apiKey", "in": "cookie", "name": sessions.COOKIE_NAME},
        ]
