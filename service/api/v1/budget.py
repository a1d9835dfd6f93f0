"""The budget of a study over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.studies import BudgetInputSerializer, StudySerializer
from service.api.views import View
from service.planning.create import extend_budget
from service.studies import selectors
from service.tenancy.permissions import Action


class StudyBudget(View):
    """/studies/NAME/budget"""

    actions = {"PUT": Action.STUDY_UPDATE}

    @extend_schema(operation_id="extendBudget", request=BudgetInputSerializer, responses=StudySerializer)
    def put(self, request: Request, name: str) -> Response:
        """Change the budget of a running search."""
        study = extend_budget(self.principal, name, self.body(BudgetInputSerializer))
        return Response(StudySerializer(selectors.get_study(self.principal, study.name)).data)
