"""The OpenAPI schema of the REST interface."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2
from rest_framework.request import Request

from service.api.views import View
from service.platform.remembered import Remembered


def _document() -> bytes:
    """Return the schema as JSON. It takes a quarter of a second."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return bytes(OpenApiJsonRenderer().render(schema, renderer_context={}))


# It follows from the code alone.
_remembered = Remembered(_document)


class SchemaView(View):
    """/schema"""

    actions = {"GET": None}
    renderer_classes = [OpenApiJsonRenderer, OpenApiJsonRenderer2]
    # It does not describe itself.
    schema = None

    def get(self, request: Request) -> HttpResponse:
        """Answer with the schema. No token is needed."""
        renderer = request.accepted_renderer
        return HttpResponse(_remembered.get(), content_type=renderer.media_type)
