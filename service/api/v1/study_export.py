"""Export of a study's trials and of its verdict as files."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.analysis import ContextRowSerializer, ParetoVerdictSerializer, VerdictSerializer
from service.api.v1.serializers.studies import StudySerializer
from service.api.v1.serializers.trials import TrialSerializer
from service.api.views import View
from service.platform import valid_json
from service.platform.rates import Rate
from service.results.analysis import analyse
from service.studies import selectors
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access, audit
from service.tenancy.permissions import Action
from service.tenancy.principal import Principal

_COLUMNS = (
    "number",
    "state",
    "origin",
    "agent",
    "node",
    "doubt",
    "round",
    "machine",
    "attempt",
    "seconds",
    "created_at",
    "started_at",
    "finished_at",
)
# What is exported of the interference.
_INTERFERENCE = ("share", "wait")
# A spreadsheet takes a text that begins with one of these for a formula, also after spaces and in full width.
_FORMULA = ("=", "+", "-", "@")
_CONTROL = ("\t", "\r", "\n")
# A person's exports of one file of a study have one entry in the audit trail for this time, in seconds.
_ENTRY_SECONDS = 60.0

_entries = Rate(1, _ENTRY_SECONDS)
# Where a comma separates decimals, spreadsheets begin a new cell after these, whether or not the text is quoted.
_CELL_ENDS = re.compile(r"([;\t\r\n])")


class _Csv(BaseRenderer):
    """A renderer for the text that the view has already written."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """Return the text. An error is still a problem document."""
        return (data if isinstance(data, str) else valid_json.dumps(data)).encode()


class ExportCsv(View):
    """/studies/NAME/trials.csv"""

    actions = {"GET": Action.STUDY_READ}
    renderer_classes = [_Csv]

    @extend_schema(operation_id="exportCsv", responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request, name: str) -> Response:
        """Export all trials as CSV, one on each line, with a column for each metric and each parameter."""
        study = selectors.get_study(self.principal, name)
        _note(self.principal, study, "trials.csv")
        text = _csv(study, selectors.all_trials(self.principal, study))
        return Response(text, headers=_as_file(f"{study.name}.csv"))


class ExportVerdict(View):
    """/studies/NAME/verdict.csv"""

    actions = {"GET": Action.STUDY_READ}
    renderer_classes = [_Csv]

    @extend_schema(operation_id="exportVerdict", responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request, name: str) -> Response:
        """Export the verdict as CSV: a line of names, and one of values if there is a verdict."""
        study = selectors.get_study(self.principal, name)
        _note(self.principal, study, "verdict.csv")
        verdict = analyse(self.principal, study).verdict
        written = io.StringIO()
        sheet = csv.writer(written, lineterminator="\n")
        names = list(VerdictSerializer().fields)
        sheet.writerow(["study", "metric", "unit", *names])
        if verdict is not None:
            [objective] = spec_of(study).problem.objectives
            values = VerdictSerializer(verdict).data
            values["effects"] = None if verdict.effects is None else verdict.effects.text
            values["configuration"] = valid_json.dumps(values["configuration"])
            values["conditions"] = "; ".join(verdict.conditions)
            values["compared"] = None if verdict.compared is None else valid_json.dumps(values["compared"])
            values["advice_data"] = None
            row = [study.name, objective.metric, objective.unit, *(values[name] for name in names)]
            sheet.writerow([_safe(value) for value in row])
        return Response(written.getvalue(), headers=_as_file(f"{study.name}-verdict.csv"))


class ExportJson(View):
    """/studies/NAME/trials.json"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="exportJson", responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, name: str) -> Response:
        """Export the study with its spec, its verdict and all trials as JSON."""
        study = selectors.get_study(self.principal, name)
        _note(self.principal, study, "trials.json")
        trials = TrialSerializer(selectors.all_trials(self.principal, study), many=True).data
        analysis = analyse(self.principal, study)
        data = {
            "study": StudySerializer(study).data,
            "verdict": analysis.verdict and VerdictSerializer(analysis.verdict).data,
            "pareto_verdict": analysis.pareto_verdict and ParetoVerdictSerializer(analysis.pareto_verdict).data,
            "contexts": ContextRowSerializer(analysis.contexts, many=True).data,
            "trials": trials,
        }
        return Response(data, headers=_as_file(f"{study.name}.json"))


def _note(principal: Principal, study: Study, file: str) -> None:
    """Write that the caller exports a file of a study. A viewer may do it in a loop, so not each time."""
    if _entries.admit((principal.tenant_id, principal.actor, study.pk, file)):
        with access.work(principal):
            audit.record(principal, "study.export", f"study/{study.name}", {"file": file})


def _as_file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _csv(study: Study, trials: Iterable[Trial]) -> str:
    problem = spec_of(study).problem
    found = list(trials)
    # Metrics that are not objectives are included.
    metrics = list(dict.fromkeys([*problem.metrics, *(name for trial in found for name in trial.metrics or {})]))
    # Trials from before an edit of the space have values of removed parameters.
    parameters = spec_of(study).whole_space.names
    written = io.StringIO()
    sheet = csv.writer(written, lineterminator="\n")
    sheet.writerow(
        [
            *_COLUMNS,
            "repeat",
            *_INTERFERENCE,
            *(f"metric:{name}" for name in metrics),
            *(["breaks"] if problem.outcome_constraints else []),
            *(f"param:{name}" for name in parameters),
            "reason",
        ]
    )
    for trial in found:
        own = (getattr(trial, name) for name in _COLUMNS)
        sheet.writerow(
            [
                *(one.isoformat() if isinstance(one, datetime) else _safe(one) for one in own),
                "" if trial.repeat is None else _safe(trial.repeat["text"]),
                *((trial.interference or {}).get(name) for name in _INTERFERENCE),
                *((trial.metrics or {}).get(name) for name in metrics),
                *([_safe("; ".join(trial.breaks or ()))] if problem.outcome_constraints else []),
                *(_safe(trial.params.get(name)) for name in parameters),
                _safe(trial.reason),
            ]
        )
    return written.getvalue()


def _safe(value: object) -> object:
    """Return a value with an apostrophe in front of each part of a text that a spreadsheet would take for a formula."""
    if not isinstance(value, str):
        return value
    text = "".join(f"'{part}" if _is_formula(part) else part for part in _CELL_ENDS.split(value))
    return f"'{text}" if value.startswith(_CONTROL) else text


def _is_formula(part: str) -> bool:
    # only the beginning counts, and a text may be long
    return unicodedata.normalize("NFKC", part.lstrip()[:1]).startswith(_FORMULA)
