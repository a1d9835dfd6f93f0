"""Studies over REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.analysis import AnalysisSerializer
from service.api.v1.serializers.settings import SettingsQuery, SettingsSerializer
from service.api.v1.serializers.studies import (
    CreateStudySerializer,
    StudyFacetsSerializer,
    StudyListSerializer,
    StudyNameSerializer,
    StudyQuery,
    StudySerializer,
    StudyTextSerializer,
    UpdateStudySerializer,
)
from service.api.v1.serializers.trials import BestTrialsSerializer
from service.api.views import View
from service.core.errors import InvalidInput
from service.fleet import recipes
from service.fleet.offers import check_offer
from service.fleet.spaces import offered_space
from service.planning.create import check_new_name, create_study, delete_study, update_state, update_tags
from service.planning.study_file import given_spec, text_of
from service.results.analysis import analyse, best_trials
from service.studies import selectors
from service.tenancy.permissions import Action


class StudyList(View):
    """/studies"""

    actions = {"GET": Action.STUDY_READ, "POST": Action.STUDY_CREATE}

    def study(self, request: Request) -> str | None:
        """Return the name of a new study from the body."""
        return _new_name(request) if request.method == "POST" else None

    @extend_schema(operation_id="listStudies", parameters=[StudyQuery], responses=StudyListSerializer)
    def get(self, request: Request) -> Response:
        """List studies, by default the newest first."""
        query = self.query(StudyQuery)
        page = selectors.list_studies(
            self.principal,
            states=query["state"],
            name_prefix=query["name_prefix"],
            search=query["search"],
            component=query["component"],
            application=query["application"],
            owner=query["owner"],
            tags=query["tag"],
            attention=query["attention"],
            where=query["where"],
            sort=query["sort"],
            page_size=query["page_size"],
            page_token=query["page_token"],
        )
        described = StudyListSerializer(
            {"studies": page.items, "next_page_token": page.next_page_token, "total_count": page.total_count}
        )
        return Response(described.data)

    @extend_schema(operation_id="createStudy", request=CreateStudySerializer, responses={201: StudySerializer})
    def post(self, request: Request) -> Response:
        """Create a study. A study with `execution` starts to run on agents at once."""
        body = self.body(CreateStudySerializer)
        with given_spec(self.principal, body["spec"], body["file"], offered_space=offered_space) as spec:
            study = create_study(
                self.principal,
                body["name"],
                spec,
                check_space=check_offer,
                tags=body["tags"],
                load_if_exists=body["load_if_exists"],
                request_id=body["request_id"],
            )
        return Response(
            StudySerializer(study).data, status=201, headers={"Location": request.build_absolute_uri(study.name)}
        )


class StudyNameCheck(View):
    """/study-name-checks"""

    actions = {"POST": Action.STUDY_CREATE}

    def study(self, request: Request) -> str | None:
        """Return the name of a new study from the body."""
        return _new_name(request)

    @extend_schema(operation_id="checkStudyName", request=StudyNameSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        """Check a name for a new study. It is refused like the creation would be, and nothing is stored."""
        check_new_name(self.principal, self.body(StudyNameSerializer)["name"])
        return Response(status=204)


class StudyFacets(View):
    """/study-facets"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getStudyFacets", responses=StudyFacetsSerializer)
    def get(self, request: Request) -> Response:
        """List the values by which studies can be filtered."""
        found = selectors.study_facets(self.principal)
        names = ("states", "components", "applications", "owners", "tags")
        described = {
            name: [{"value": value, "count": count} for value, count in getattr(found, name)] for name in names
        }
        return Response({**described, "attention": found.attention})


class StudyDetail(View):
    """/studies/NAME"""

    actions = {"GET": Action.STUDY_READ, "PATCH": Action.STUDY_UPDATE, "DELETE": Action.STUDY_DELETE}

    @extend_schema(operation_id="getStudy", responses=StudySerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get one study."""
        return Response(StudySerializer(selectors.get_study(self.principal, name)).data)

    @extend_schema(operation_id="updateStudy", request=UpdateStudySerializer, responses=StudySerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Pause, resume, complete (running trials finish) or abort (running trials stop) a study, or set its tags."""
        body = self.body(UpdateStudySerializer)
        if ("state" in body) == ("tags" in body):
            raise InvalidInput("state", body.get("state"), "either `state` or `tags`")
        if "tags" in body:
            update_tags(self.principal, name, body["tags"])
        else:
            update_state(self.principal, name, body["state"], reason=body["reason"])
        return Response(StudySerializer(selectors.get_study(self.principal, name)).data)

    @extend_schema(operation_id="deleteStudy", responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a study with all its trials."""
        delete_study(self.principal, name)
        return Response(status=204)


class StudyAsFile(View):
    """/studies/NAME/file"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getStudyFile", responses=StudyTextSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get a study file for this study, with its present space and budget."""
        return Response({"text": text_of(selectors.get_study(self.principal, name))})


class StudyBest(View):
    """/studies/NAME/best"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getBestTrials", responses=BestTrialsSerializer)
    def get(self, request: Request, name: str) -> Response:
        """List the best trial or the Pareto set. The list is empty before the first result."""
        study = selectors.get_study(self.principal, name)
        analysis = analyse(self.principal, study)
        found: dict[str, Any] = {"trials": best_trials(self.principal, study, analysis)}
        return Response(BestTrialsSerializer(found).data)


class StudySettings(View):
    """/studies/NAME/settings"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getStudySettings", parameters=[SettingsQuery], responses=SettingsSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get the recommended values, or those of a trial, in the form in which the program takes them."""
        query = self.query(SettingsQuery)
        found = recipes.settings(self.principal, name, query["format"], trial=query["trial"], context=query["context"])
        described = {
            "text": found.rendered.text,
            "files": [{"name": one, "text": text} for one, text in found.rendered.files.items()],
            "notes": found.rendered.notes,
            "params": found.params,
            "by_component": found.component,
        }
        return Response(SettingsSerializer(described).data)


class StudyAnalysis(View):
    """/studies/NAME/analysis"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getStudyAnalysis", responses=AnalysisSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get the default configuration, the best configuration, and the gain."""
        analysis = analyse(self.principal, selectors.get_study(self.principal, name), may_lag=True)
        return Response(AnalysisSerializer(analysis).data)


def _new_name(request: Request) -> str | None:
    name = request.data.get("name") if isinstance(request.data, dict) else None
    return name if isinstance(name, str) else None
