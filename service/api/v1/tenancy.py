"""The caller's tenant and, for operators, all tenants over REST."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.threads import stream
from service.api.v1.serializers.queue import QueueSerializer
from service.api.v1.serializers.tenancy import (
    AuditPageQuery,
    AuditPageSerializer,
    AuditQuery,
    ChangeTenantSerializer,
    CreateTenantSerializer,
    QuotaSerializer,
    TenantListSerializer,
    TenantSerializer,
)
from service.api.views import View
from service.platform import valid_json
from service.tenancy import audit, export, tenants
from service.tenancy.permissions import Action
from service.trials import presence
from service.trials.quotas import meter

JSON_LINES = "application/x-ndjson"


class AuditTrail(View):
    """/audit"""

    actions = {"GET": Action.AUDIT_READ}

    @extend_schema(operation_id="listAuditEntries", parameters=[AuditPageQuery], responses=AuditPageSerializer)
    def get(self, request: Request) -> Response:
        """List the changes in the tenant with their authors, the newest first."""
        query = self.query(AuditPageQuery)
        size, token = query.pop("page_size"), query.pop("page_token")
        page = audit.page(self.principal, audit.Filter(**query), size=size, token=token)
        return Response(AuditPageSerializer({"entries": page.items, "next_page_token": page.next_page_token}).data)


class AuditExport(View):
    """/audit/export"""

    actions = {"GET": Action.AUDIT_READ}

    @extend_schema(
        operation_id="exportAudit", parameters=[AuditQuery], responses={(200, JSON_LINES): OpenApiTypes.BINARY}
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export the audit trail as JSON lines, the oldest entry first."""
        found = audit.export(self.principal, audit.Filter(**self.query(AuditQuery)))
        return _download("audit.jsonl", (b"".join(map(_line, entries)) for entries in found))


class TenantExport(View):
    """/tenant/export"""

    actions = {"GET": Action.TENANT_EXPORT}

    @extend_schema(operation_id="exportTenant", responses={(200, JSON_LINES): OpenApiTypes.BINARY})
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export all data of the tenant as JSON lines; service/tenancy/export.py describes them."""
        tenant = tenants.get(tenants.slug_of(self.principal.tenant_id))
        return _download(f"{tenant.slug}.jsonl", export.lines(self.principal, tenant))


class Quota(View):
    """/quota"""

    actions = {"GET": Action.QUOTA_READ}

    @extend_schema(operation_id="getQuota", responses=QuotaSerializer)
    def get(self, request: Request) -> Response:
        """Get the limits and the usage of the tenant."""
        limits, used = meter.usage(self.principal)
        return Response(QuotaSerializer({"limits": limits, "used": used}).data)


class QueueView(View):
    """/queue"""

    actions = {"GET": Action.TENANT_MANAGE}

    @extend_schema(operation_id="getQueue", responses=QueueSerializer)
    def get(self, request: Request) -> Response:
        """Get the queue for workers and agents in all tenants, and the workers."""
        return Response(QueueSerializer(presence.overview()).data)


class TenantList(View):
    """/tenants"""

    actions = {"GET": Action.TENANT_MANAGE, "POST": Action.TENANT_MANAGE}

    @extend_schema(operation_id="listTenants", responses=TenantListSerializer)
    def get(self, request: Request) -> Response:
        """List all tenants of the installation by slug."""
        return Response(TenantListSerializer({"tenants": tenants.every()}).data)

    @extend_schema(operation_id="createTenant", request=CreateTenantSerializer, responses={201: TenantSerializer})
    def post(self, request: Request) -> Response:
        """Create a tenant."""
        tenant = tenants.create(self.principal, **self.body(CreateTenantSerializer))
        return Response(TenantSerializer(tenant).data, status=201)


class TenantDetail(View):
    """/tenants/SLUG"""

    actions = {"GET": Action.TENANT_MANAGE, "PATCH": Action.TENANT_MANAGE}

    @extend_schema(operation_id="getTenant", responses=TenantSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Get one tenant."""
        return Response(TenantSerializer(tenants.get(slug)).data)

    @extend_schema(operation_id="changeTenant", request=ChangeTenantSerializer, responses=TenantSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Rename, limit, disable or enable a tenant. The command `trimtab-service tenants delete` deletes one."""
        body = self.body(ChangeTenantSerializer)
        tenant = tenants.change(
            self.principal, slug, name=body.get("name"), disabled=body.get("disabled"), limits_=body.get("limits")
        )
        return Response(TenantSerializer(tenant).data)


def _line(entry: Any) -> bytes:
    return valid_json.dumps(audit.as_json(entry), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _download(name: str, parts: Iterator[bytes]) -> StreamingHttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(stream(parts), content_type=JSON_LINES, headers=headers)
