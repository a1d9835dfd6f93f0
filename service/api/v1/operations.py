"""Asks and their operations over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.operations import (
    OperationSerializer,
    RenewedSerializer,
    RenewSerializer,
    SuggestSerializer,
)
from service.api.views import View
from service.studies import selectors
from service.studies.models.operation import UNFINISHED
from service.studies.selectors import OperationDetail
from service.tenancy.permissions import Action
from service.trials import ask, client_leases


class SuggestionList(View):
    """/studies/NAME/suggestions"""

    actions = {"POST": Action.TRIAL_SUGGEST}

    @extend_schema(
        operation_id="suggestTrials",
        request=SuggestSerializer,
        responses={200: OperationSerializer, 202: OperationSerializer},
    )
    def post(self, request: Request, name: str) -> Response:
        """Ask for trials. 200: the answer has them. 202: a worker computes them; poll the operation."""
        body = self.body(SuggestSerializer)
        return _answer(ask.ask(self.principal, name, **body))


class RenewalList(View):
    """/studies/NAME/renewals"""

    actions = {"POST": Action.TRIAL_REPORT}

    @extend_schema(operation_id="renewTrials", request=RenewSerializer, responses=RenewedSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Keep trials that were asked for with a lease. The answer has those that the client still has."""
        body = self.body(RenewSerializer)
        return Response(RenewedSerializer({"trials": client_leases.renew(self.principal, name, **body)}).data)


class OperationView(View):
    """/operations/ID"""

    actions = {"GET": Action.OPERATION_READ}

    @extend_schema(operation_id="getOperation", responses={200: OperationSerializer, 202: OperationSerializer})
    def get(self, request: Request, operation_id: str) -> Response:
        """Get one operation. 202: it is still being computed."""
        return _answer(selectors.get_operation(self.principal, operation_id))


def _answer(detail: OperationDetail) -> Response:
    data = OperationSerializer(detail).data
    if detail.operation.state in UNFINISHED:
        location = f"/api/v1/operations/{detail.operation.id}"
        return Response(data, status=202, headers={"Location": location, "Retry-After": "1"})
    return Response(data)
