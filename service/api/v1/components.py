"""Components over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.components import (
    CheckedSerializer,
    ComponentDetailSerializer,
    ComponentListSerializer,
    ComponentTextSerializer,
    FileDetailSerializer,
    WriteComponentSerializer,
)
from service.api.views import View
from service.fleet import component_files, components
from service.tenancy.permissions import Action


class ComponentList(View):
    """/components"""

    actions = {"GET": Action.AGENT_READ, "POST": Action.COMPONENT_WRITE}

    @extend_schema(operation_id="listComponents", responses=ComponentListSerializer)
    def get(self, request: Request) -> Response:
        """All components that agents offer, members have written or studies have tuned, by name."""
        found = components.list_components(self.principal)
        return Response(ComponentListSerializer({"components": found}).data)

    @extend_schema(
        operation_id="writeComponent", request=WriteComponentSerializer, responses={201: FileDetailSerializer}
    )
    def post(self, request: Request) -> Response:
        """Keep a new version of a component's file. It runs nowhere until a cluster's administrator installs it."""
        body = self.body(WriteComponentSerializer)
        file = component_files.write(self.principal, body["text"], after=body["after"])
        return Response(FileDetailSerializer(file).data, status=201)


class ComponentCheck(View):
    """/component-checks"""

    actions = {"POST": Action.AGENT_READ}

    @extend_schema(operation_id="checkComponent", request=ComponentTextSerializer, responses=CheckedSerializer)
    def post(self, request: Request) -> Response:
        """What is wrong with a component's file, all at once. Nothing is kept."""
        return Response(CheckedSerializer(component_files.check(self.body(ComponentTextSerializer)["text"])).data)


class _OfComponent(View):
    def study(self, request: Request) -> str | None:
        """The path names no study."""
        return None


class ComponentView(_OfComponent):
    """/components/NAME"""

    actions = {"GET": Action.AGENT_READ}

    @extend_schema(operation_id="getComponent", responses=ComponentDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One component with its parameters, and the best settings known for each of its applications."""
        component = components.get_component(self.principal, name)
        best = components.best_settings(self.principal, name)
        described = {
            "name": name,
            "versions": component.versions,
            "studies": component.studies,
            "files": component.files,
            "best": best,
        }
        return Response(ComponentDetailSerializer(described).data)


class ComponentFiles(_OfComponent):
    """/components/NAME/files"""

    actions = {"DELETE": Action.COMPONENT_WRITE}

    @extend_schema(operation_id="deleteComponentFiles", responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Remove all versions of a component that were written here. What is installed on clusters stays there."""
        component_files.delete(self.principal, name)
        return Response(status=204)


class ComponentFileView(_OfComponent):
    """/components/NAME/files/NUMBER"""

    actions = {"GET": Action.AGENT_READ}

    @extend_schema(operation_id="getComponentFile", responses=FileDetailSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """One version with its text."""
        return Response(FileDetailSerializer(component_files.get(self.principal, name, number=number)).data)
