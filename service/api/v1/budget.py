"""The budget and the final check of a study over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.studies import BudgetInputSerializer, CheckInputSerializer, StudySerializer
from service.api.views import View
from service.planning.create import extend_budget
from service.studies import selectors
from service.tenancy.permissions import Action
from service.trials.continuing import check_study


class StudyBudget(View):
    """/studies/NAME/budget"""

    actions = {"PUT": Action.STUDY_UPDATE}

    @extend_schema(operation_id="extendBudget", request=BudgetInputSerializer, responses=StudySerializer)
    def put(self, request: Request, name: str) -> Response:
        """Change the budget of a search. A COMPLETED study that is given more continues its search."""
        study = extend_budget(self.principal, name, self.body(BudgetInputSerializer))
        return Response(StudySerializer(selectors.get_study(self.principal, study.name)).data)


class StudyCheck(View):
    """/studies/NAME/check"""

    actions = {"POST": Action.STUDY_UPDATE}

    @extend_schema(operation_id="checkStudy", request=CheckInputSerializer, responses=StudySerializer)
    def post(self, request: Request, name: str) -> Response:
        """Begin a final check of a COMPLETED study. Its verdict replaces the earlier one."""
        body = self.body(CheckInputSerializer)
        request_id = body.pop("request_id")
        study = check_study(self.principal, name, body, request_id=request_id)
        return Response(StudySerializer(selectors.get_study(self.principal, study.name)).data)
