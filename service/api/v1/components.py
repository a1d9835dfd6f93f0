"""Components over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.components import ComponentDetailSerializer, ComponentListSerializer
from service.api.views import View
from service.fleet import components
from service.tenancy.permissions import Action


class ComponentList(View):
    """/components"""

    actions = {"GET": Action.AGENT_READ}

    @extend_schema(operation_id="listComponents", responses=ComponentListSerializer)
    def get(self, request: Request) -> Response:
        """All components that agents offer or studies have tuned, by name."""
        found = components.list_components(self.principal)
        return Response(ComponentListSerializer({"components": found}).data)


class ComponentView(View):
    """/components/NAME"""

    actions = {"GET": Action.AGENT_READ}

    def study(self, request: Request) -> str | None:
        """The path names no study."""
        return None

    @extend_schema(operation_id="getComponent", responses=ComponentDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One component with its parameters, and the best settings known for each of its applications."""
        component = components.get_component(self.principal, name)
        best = components.best_settings(self.principal, name)
        described = {"name": name, "versions": component.versions, "studies": component.studies, "best": best}
        return Response(ComponentDetailSerializer(described).data)
