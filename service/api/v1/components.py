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
    GallerySerializer,
    WriteComponentSerializer,
)
from service.api.views import View
from service.fleet import component_files, components
from service.planning.gallery import gallery
from service.tenancy.permissions import Action


class ComponentList(View):
    """/components"""

    actions = {"GET": Action.AGENT_READ, "POST": Action.COMPONENT_WRITE}

    @extend_schema(operation_id="listComponents", responses=ComponentListSerializer)
    def get(self, request: Request) -> Response:
        """List all components that agents offer, members have written or studies have tuned, by name."""
        found = components.list_components(self.principal)
        return Response(ComponentListSerializer({"components": found}).data)

    @extend_schema(
        operation_id="writeComponent", request=WriteComponentSerializer, responses={201: FileDetailSerializer}
    )
    def post(self, request: Request) -> Response:
        """Store a new version of a component's file. It runs only after a cluster's administrator has installed it."""
        body = self.body(WriteComponentSerializer)
        file = component_files.write(self.principal, body["text"], after=body["after"])
        return Response(FileDetailSerializer(file).data, status=201)


class GalleryView(View):
    """/gallery"""

    actions = {"GET": Action.AGENT_READ}

    @extend_schema(operation_id="getGallery", responses=GallerySerializer)
    def get(self, request: Request) -> Response:
        """List systems that have a component which ships with the agent, with its study file and its measured gain."""
        return Response(GallerySerializer(gallery()).data)


class ComponentCheck(View):
    """/component-checks"""

    actions = {"POST": Action.AGENT_READ}

    @extend_schema(operation_id="checkComponent", request=ComponentTextSerializer, responses=CheckedSerializer)
    def post(self, request: Request) -> Response:
        """Check a component's file and list all its errors. Nothing is stored."""
        return Response(CheckedSerializer(component_files.check(self.body(ComponentTextSerializer)["text"])).data)


class _OfComponent(View):
    def study(self, request: Request) -> str | None:
        """Return None, since the path names no study."""
        return None


class ComponentView(_OfComponent):
    """/components/NAME"""

    actions = {"GET": Action.AGENT_READ}

    @extend_schema(operation_id="getComponent", responses=ComponentDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get one component with its parameters, and the best known settings for each of its applications."""
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
        """Delete all versions of a component that were written in the console. Installed versions stay on clusters."""
        component_files.delete(self.principal, name)
        return Response(status=204)


class ComponentFileView(_OfComponent):
    """/components/NAME/files/NUMBER"""

    actions = {"GET": Action.AGENT_READ}

    @extend_schema(operation_id="getComponentFile", responses=FileDetailSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """Get one version with its text."""
        return Response(FileDetailSerializer(component_files.get(self.principal, name, number=number)).data)
