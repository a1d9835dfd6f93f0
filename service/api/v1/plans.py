"""Plans of studies, dry runs, and the catalogue of methods over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.plans import (
    AskDryRunSerializer,
    DryRunSerializer,
    MethodsSerializer,
    PlanSerializer,
    PlanStudySerializer,
)
from service.api.views import View
from service.fleet import dry_runs, selectors
from service.fleet.components import obstacle
from service.fleet.offers import check_offer
from service.fleet.spaces import offered_space
from service.planning.catalogue import catalogue
from service.planning.plan import plan
from service.planning.study_file import given_spec
from service.tenancy.permissions import Action


class MethodList(View):
    """/methods"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="listMethods", responses=MethodsSerializer)
    def get(self, request: Request) -> Response:
        """List algorithms, policies and rules with their options, and the keys of study files."""
        return Response(MethodsSerializer(catalogue()).data)


class PlanList(View):
    """/plans"""

    actions = {"POST": Action.STUDY_CREATE}

    @extend_schema(operation_id="planStudy", request=PlanStudySerializer, responses=PlanSerializer)
    def post(self, request: Request) -> Response:
        """Plan a study with this spec or file. It is checked like a new study, and nothing is stored."""
        body = self.body(PlanStudySerializer)
        with given_spec(self.principal, body["spec"], body["file"], offered_space=offered_space) as spec:
            found = plan(self.principal, spec, check_space=check_offer)
        execution = found.spec.execution
        agents = []
        if execution is not None:
            for agent in selectors.list_agents(self.principal):
                why = obstacle(agent, execution.component, execution.digest, execution.application)
                agents.append(
                    {"agent_id": agent.agent_id, "name": agent.name, "obstacle": why, "free": agent.slots - agent.busy}
                )
        choice = found.spec.choice
        described = PlanSerializer(
            {
                "spec": found.spec.to_json(),
                "algorithm_choice": choice,
                "size": None if found.size is None else str(found.size),
                "feasible": None if found.feasible is None else str(found.feasible),
                "first": found.first,
                "agents": agents,
                "duration": found.duration,
                "started_from": found.started_from,
            }
        )
        return Response(described.data)


class DryRunList(View):
    """/dry-runs"""

    actions = {"POST": Action.STUDY_CREATE}

    @extend_schema(
        operation_id="askDryRun",
        request=AskDryRunSerializer,
        responses={200: DryRunSerializer, 202: DryRunSerializer},
    )
    def post(self, request: Request) -> Response:
        """Ask agents what they would run for the first trials of a study with this spec. 202: no answer yet, try again.

        A repeated call does not ask the agents again. It returns the present answer.
        """
        body = self.body(AskDryRunSerializer)
        found = dry_runs.ask(self.principal, body["spec"], body["name"])
        data = DryRunSerializer(found).data
        if found.state == dry_runs.State.WAITING:
            return Response(data, status=202, headers={"Retry-After": "1"})
        return Response(data)
