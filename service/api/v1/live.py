"""Live studies over REST. No plan is decided by a GET: notices carry a link to the page alone."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.live import (
    DecideSerializer,
    LiveBoardQuery,
    LiveBoardSerializer,
    LiveResultSerializer,
    LiveStatusSerializer,
    StopSerializer,
)
from service.api.views import View
from service.core.errors import NotFound
from service.fleet import live
from service.live.status import revealed
from service.studies import selectors
from service.tenancy.permissions import Action


class LiveBoardView(View):
    """/live"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getLiveBoard", parameters=[LiveBoardQuery], responses=LiveBoardSerializer)
    def get(self, request: Request) -> Response:
        """Get the live studies, and the state of one of them in full."""
        return Response(LiveBoardSerializer(live.board(self.principal, **self.query(LiveBoardQuery))).data)


class LiveView(View):
    """/studies/NAME/live"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getLive", responses=LiveStatusSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get what is in force on the system of a live study, what waits for people, and what it has cost."""
        return Response(LiveStatusSerializer(live.status(self.principal, name)).data)


class LiveStop(View):
    """/studies/NAME/live/stop"""

    actions = {"POST": Action.STUDY_UPDATE}

    @extend_schema(operation_id="stopLive", request=StopSerializer, responses=LiveStatusSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Pause a live study and end its running trials. Agents put the settings before the first trial back."""
        return Response(LiveStatusSerializer(live.stop(self.principal, name, **self.body(StopSerializer))).data)


class LiveApprove(View):
    """/studies/NAME/trials/NUMBER/approve"""

    actions = {"POST": Action.LIVE_APPROVE}

    @extend_schema(operation_id="approvePlan", request=DecideSerializer, responses=LiveStatusSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """Approve the plan of a live trial that waits."""
        reason = self.body(DecideSerializer)["reason"]
        return Response(
            LiveStatusSerializer(live.decide(self.principal, name, number, approve=True, reason=reason)).data
        )


class LiveDecline(View):
    """/studies/NAME/trials/NUMBER/decline"""

    actions = {"POST": Action.LIVE_APPROVE}

    @extend_schema(operation_id="declinePlan", request=DecideSerializer, responses=LiveStatusSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """Decline the plan of a live trial that waits. Another candidate takes its place."""
        reason = self.body(DecideSerializer)["reason"]
        return Response(
            LiveStatusSerializer(live.decide(self.principal, name, number, approve=False, reason=reason)).data
        )


class LiveTrialResult(View):
    """/studies/NAME/trials/NUMBER/live"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getLiveResult", responses=LiveResultSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """Get the pairs, the journal and the coin of a live trial that has ended."""
        found = revealed(self.principal, selectors.get_trial(self.principal, name, number).trial)
        if found is None:
            raise NotFound("no_live_result", f"Trial {number} of study {name!r} has no result of a live trial.")
        return Response(LiveResultSerializer(found).data)
