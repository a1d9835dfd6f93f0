"""Queries of studies, trials and operations."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.utils import timezone

from service.core.errors import Conflict, InvalidInput, NotFound
from service.core.lifecycle import StudyState, TrialState
from service.studies.change import expect_meant
from service.studies.models import Artifact, Measurement, Operation, Study, Trial, TrialLog
from service.tenancy import access, pages
from service.tenancy.conditions import Column, percent, select
from service.tenancy.models import AuditEntry
from service.tenancy.pages import Page
from service.tenancy.principal import Principal

# How long after its result a trial's last output may arrive.
LAST_OUTPUT = timedelta(seconds=3)
# The action of a deletion in the audit trail, by which a repeated deletion is recognised.
DELETED = "study.delete"

# The sort keys of lists of studies, each with the value that replaces a missing one; None: it is never missing.
NEWEST = "-created"
SORTS: Mapping[str, tuple[Any, float | None]] = {
    "name": (F("name"), None),
    "component": (F("component"), None),
    "application": (F("application"), None),
    "state": (F("state"), None),
    "owner": (F("owner"), None),
    "trials": (F("finished_count"), None),
    "best": (F("summary__best"), math.inf),
    "gain": (F("summary__gain"), math.inf),
    "created": (F("created_at"), None),
    "updated": (F("updated_at"), None),
}
# The columns of lists of studies that conditions can name. A gain is in per cent, as people see it.
COLUMNS: Mapping[str, Column] = {
    "name": Column(F("name")),
    "component": Column(F("component")),
    "application": Column(F("application")),
    "algorithm": Column(RawSQL("studies_study.spec #>> '{algorithm,name}'", (), output_field=TextField())),  # nosec B611
    "state": Column(F("state"), "word"),
    "reason": Column(F("state_reason")),
    "owner": Column(F("owner")),
    "trials": Column(F("finished_count"), "number"),
    "best": Column(F("summary__best"), "number"),
    "gain": percent("summary__gain"),
    "created": Column(F("created_at"), "time"),
    "updated": Column(F("updated_at"), "time"),
}
# The reasons of waiting trials begin with these words: no online agent fits, or all that do are busy.
NO_AGENT, TURN = "Waits for an agent", "Waits for its turn"
# A study whose trials wait and in which nothing has changed for so long needs a person.
_STUCK = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Facets:
    """The values by which studies can be filtered, with the number of studies. `attention`: how many need it."""

    states: list[tuple[str, int]]
    components: list[tuple[str, int]]
    applications: list[tuple[str, int]]
    owners: list[tuple[str, int]]
    tags: list[tuple[str, int]]
    attention: int


@dataclass(frozen=True, slots=True)
class TrialDetail:
    """A trial with its measurements, the end of its output, and its artifacts."""

    study: Study
    trial: Trial
    measurements: list[Measurement]
    log: str
    # Without their contents.
    artifacts: list[Artifact]


@dataclass(frozen=True, slots=True)
class LogPart:
    """The output of a trial since the caller's last look: of the run `source`, up to `size` bytes.

    `reset`: it does not continue the last look, because another run began or more was printed than is kept.
    """

    source: str
    size: int
    text: str
    reset: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class OperationDetail:
    """An operation with the trials it has given so far, in the order of their numbers."""

    operation: Operation
    study: Study
    trials: list[Trial]


@dataclass(frozen=True, slots=True)
class Changes:
    """Trials that changed up to `revision`. The next call begins there; it should follow at once if there are `more`.

    `sampled`: the trials are a sample of all trials instead of those that changed.
    """

    study: Study
    trials: list[Trial]
    revision: int
    more: bool
    sampled: bool = False


def find_study(principal: Principal, name: str) -> Study | None:
    """Return the study of this name, or None."""
    return access.rows(Study, principal).filter(name=name).first()


def get_study(principal: Principal, name: str) -> Study:
    """Return the study of this name. Raises NotFound, also if the call means a deleted study of this name."""
    study = find_study(principal, name)
    if study is None:
        raise NotFound("study_not_found", f"There is no study {name!r}.")
    expect_meant(principal, study)
    return study


def was_deleted(principal: Principal, name: str) -> bool:
    """Return whether a study of this name was deleted once."""
    return access.rows(AuditEntry, principal).filter(action=DELETED, target=f"study/{name}").exists()


def list_studies(
    principal: Principal,
    *,
    states: Sequence[str] = (),
    name_prefix: str = "",
    search: str = "",
    component: str = "",
    application: str = "",
    owner: str = "",
    tags: Sequence[str] = (),
    attention: bool = False,
    where: Sequence[str] = (),
    sort: str = NEWEST,
    page_size: int = 0,
    page_token: str = "",
) -> Page[Study]:
    """Return a page of studies with their summaries, the newest first or in the order of `sort`. Raises InvalidInput.

    `search` matches part of the name, component, application or owner, or a whole tag. A study must have all `tags`.
    `attention` selects studies that need an action of a person to continue. All conditions of `where` hold, such as
    "gain > 10"; `COLUMNS` lists their columns.
    """
    if sort.removeprefix("-") not in SORTS:
        raise InvalidInput("sort", sort, f"{', '.join(SORTS)}; with a leading - in descending order")
    studies = access.rows(Study, principal)
    if states:
        studies = studies.filter(state__in=check_states(states, list(StudyState)))
    if name_prefix:
        studies = studies.filter(name__startswith=name_prefix)
    if search:
        fields = ("name", "component", "application", "owner")
        found = Q(tags__contains=[search])
        for field in fields:
            found |= Q(**{f"{field}__icontains": search})
        studies = studies.filter(found)
    equal = {"component": component, "application": application, "owner": owner}
    studies = studies.filter(**{field: value for field, value in equal.items() if value})
    if tags:
        studies = studies.filter(tags__contains=list(tags))
    if attention:
        studies = studies.filter(_needs_attention(principal))
    studies = select(studies, where, COLUMNS)
    total = studies.count()
    studies = studies.select_related("summary")
    if sort == NEWEST:
        # This order needs only the primary key as its token.
        return replace(pages.page(studies, "-pk", page_size, page_token), total_count=total)
    size = pages.check_size(page_size)
    items = list(_sorted(studies, sort, page_token)[: size + 1])
    return Page(items[:size], _sorted_token(items[size - 1]) if len(items) > size else "", total)


def _needs_attention(principal: Principal) -> Q:
    """Return the condition on studies that need an action of a person to continue.

    They are paused with a reason, or their trials wait while none runs: because no online agent fits, or for minutes
    without a known reason. A study that waits for its turn on a busy agent needs nothing.
    """
    waiting = access.rows(Trial, principal).filter(study_id=OuterRef("pk"), state=TrialState.REQUESTED)
    waits = Q(state=StudyState.ACTIVE, parallelism__isnull=False, requested_count__gt=0, active_count=0)
    unfit = Exists(waiting.filter(reason__startswith=NO_AGENT))
    queued = Exists(waiting.filter(reason__startswith=TURN))
    stuck = Q(updated_at__lt=timezone.now() - _STUCK) & ~queued
    return Q(state=StudyState.PAUSED) & ~Q(state_reason="") | waits & (unfit | stuck)


def _sorted(studies: QuerySet[Study], sort: str, token: str) -> QuerySet[Study]:
    """Return the studies after the one that the token names, in order.

    Studies without a value come last in both directions. Among equal values the newest study comes first.
    """
    key, down = sort.removeprefix("-"), sort.startswith("-")
    expression, missing = SORTS[key]
    if missing is not None:
        expression = Coalesce(expression, Value(-missing if down else missing))
    studies = studies.annotate(sort_key=expression)
    if token:
        after, pk = _check_sorted_token(token)
        beyond = Q(sort_key__lt=after) if down else Q(sort_key__gt=after)
        try:
            studies = studies.filter(beyond | Q(sort_key=after, pk__lt=pk))
        except (TypeError, ValueError, ValidationError):
            raise _bad_token(token) from None
    return studies.order_by("-sort_key" if down else "sort_key", "-pk")


def _sorted_token(study: Study) -> str:
    key = study.sort_key  # type: ignore[attr-defined]
    text = json.dumps([key.isoformat() if isinstance(key, datetime) else key, study.pk])
    return base64.urlsafe_b64encode(text.encode()).decode()


def _check_sorted_token(token: str) -> tuple[Any, int]:
    try:
        after, pk = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, TypeError):
        raise _bad_token(token) from None
    if isinstance(pk, bool) or not isinstance(pk, int) or not isinstance(after, str | int | float):
        raise _bad_token(token)
    return after, pk


def _bad_token(token: str) -> InvalidInput:
    return InvalidInput("page_token", token, "the next_page_token of the previous page, with the same sort")


def study_facets(principal: Principal) -> Facets:
    """Return the values by which studies can be filtered, and how many studies have each."""
    studies = access.rows(Study, principal).order_by()

    def counted(field: str) -> list[tuple[str, int]]:
        found = studies.exclude(**{field: ""}).values_list(field).annotate(count=Count("pk"))
        return sorted((str(value), int(count)) for value, count in found)

    tags = studies.annotate(tag=Func(F("tags"), function="unnest")).values_list("tag").annotate(count=Count("pk"))
    return Facets(
        states=counted("state"),
        components=counted("component"),
        applications=counted("application"),
        owners=counted("owner"),
        tags=sorted((str(tag), int(count)) for tag, count in tags),
        attention=studies.filter(_needs_attention(principal)).count(),
    )


def trial_of(principal: Principal, study: str, number: int) -> Trial:
    """Return the trial of this number, with its study. Raises NotFound."""
    found = get_study(principal, study)
    trial = access.rows(Trial, principal).filter(study_id=found.pk, number=number).first()
    if trial is None:
        raise NotFound("trial_not_found", f"Study {study!r} has no trial {number}.")
    trial.study = found
    return trial


def get_trial(principal: Principal, study: str, number: int) -> TrialDetail:
    """Return a trial with its measurements and the end of its output. Raises NotFound."""
    trial = trial_of(principal, study, number)
    measurements = list(access.rows(Measurement, principal).filter(trial_id=trial.pk).order_by("step"))
    log = access.rows(TrialLog, principal).filter(trial_id=trial.pk).first()
    artifacts = access.rows(Artifact, principal).filter(trial_id=trial.pk).defer("content")
    return TrialDetail(
        trial.study,
        trial,
        measurements,
        # It may begin in the middle of a character.
        bytes(log.tail).decode(errors="replace") if log else "",
        list(artifacts.order_by("attempt", "source", "name")),
    )


def get_artifact(principal: Principal, study: str, number: int, key: int) -> tuple[Artifact, bytes]:
    """Return a file that a trial has left, with its content. Raises NotFound."""
    trial = trial_of(principal, study, number)
    found = access.rows(Artifact, principal).filter(trial_id=trial.pk, pk=key).first()
    if found is None:
        raise NotFound("artifact_not_found", f"Trial {number} of study {study!r} has no artifact {key}.")
    if found.content is None:
        raise NotFound("artifact_left_out", f"The content of {found.name!r} is not kept: {found.left_out}.")
    return found, bytes(found.content)


def log_since(principal: Principal, study: str, number: int, source: str, size: int) -> LogPart:
    """Return a trial's output after `size` bytes of the run `source`; all that is kept if another run began.

    A character whose bytes have not all arrived is left for the next call. Raises NotFound.
    """
    trial = trial_of(principal, study, number)
    # Read after the trial, so that the log holds all that the trial printed before it ended.
    log = access.rows(TrialLog, principal).filter(trial_id=trial.pk).first()
    ended = trial.state not in (TrialState.REQUESTED, TrialState.ACTIVE) and not _may_print(trial)
    if log is None:
        return LogPart("", 0, "", reset=False, ended=ended)
    tail = bytes(log.tail)
    kept_from = log.size - len(tail)
    follows = str(log.source) == source and kept_from <= size
    new = tail[max(0, size - kept_from) :] if follows else tail
    whole = len(new) if ended else len(new) - _unfinished(new)
    return LogPart(
        str(log.source),
        log.size - (len(new) - whole),
        new[:whole].decode(errors="replace"),
        reset=not follows,
        ended=ended,
    )


def _may_print(trial: Trial) -> bool:
    """Return whether a trial's last output may still arrive: an agent reports the result first."""
    if not trial.agent or trial.finished_at is None:
        return False
    return abs(timezone.now() - trial.finished_at) < LAST_OUTPUT


def _unfinished(data: bytes) -> int:
    """Return the number of bytes at the end that begin an incomplete character of UTF-8."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return back if length > back else 0
    return 0


def find_trial(principal: Principal, study: str, request_id: str) -> Trial | None:
    """Return the trial that an earlier request of this id added, or None. Raises Conflict (`request_id_reused`)."""
    if not request_id:
        return None
    found = access.rows(Trial, principal).filter(request_id=request_id).select_related("study").first()
    if found is not None and found.study.name != study:
        raise Conflict("request_id_reused", f"The request_id {request_id!r} belongs to another study. Use a new one.")
    return found


def list_trials(
    principal: Principal,
    study: str,
    *,
    states: Sequence[str] = (),
    client_id: str = "",
    page_size: int = 0,
    page_token: str = "",
    newest_first: bool = False,
) -> Page[Trial]:
    """Return a page of a study's trials by number, each with its study. Raises InvalidInput, NotFound."""
    found = get_study(principal, study)
    trials = access.rows(Trial, principal).filter(study_id=found.pk)
    if states:
        trials = trials.filter(state__in=check_states(states, list(TrialState)))
    if client_id:
        trials = trials.filter(client_id=client_id)
    page = pages.page(trials, "-number" if newest_first else "number", page_size, page_token)
    for trial in page.items:
        trial.study = found
    return page


def all_trials(principal: Principal, study: Study) -> list[Trial]:
    """Return all trials of a study by number, for an export."""
    return list(access.rows(Trial, principal).filter(study_id=study.pk).order_by("number"))


def get_operation(principal: Principal, operation_id: UUID | str) -> OperationDetail:
    """Return an operation and its trials. Raises NotFound."""
    try:
        wanted = operation_id if isinstance(operation_id, UUID) else UUID(operation_id)
    except ValueError:
        wanted = None
    detail = None if wanted is None else _detail(principal, id=wanted)
    if detail is None or principal.study not in (None, detail.study.name):
        raise NotFound("operation_not_found", f"There is no operation {str(operation_id)!r}.")
    return detail


def find_operation(principal: Principal, request_id: str) -> OperationDetail | None:
    """Return the operation that a request created, or None."""
    return _detail(principal, request_id=request_id)


def changes(principal: Principal, study: str, from_revision: int, *, limit: int = 500) -> Changes:
    """Return what changed in a study after a revision, oldest first. Raises NotFound."""
    # Study first: a change that is committed between the two reads is then reported now or next time, never skipped.
    found = get_study(principal, study)
    changed = access.rows(Trial, principal).filter(study_id=found.pk, revision__lte=found.revision)
    page = list(changed.filter(revision__gt=from_revision).order_by("revision", "number")[: limit + 1])
    if len(page) <= limit:
        return Changes(found, page, found.revision, False)
    # Trials that changed together must come together, because a watcher remembers only a revision.
    last = page[limit].revision
    whole = [trial for trial in page if trial.revision < last]
    if not whole:
        whole = list(changed.filter(revision=last).order_by("number"))
    return Changes(found, whole, whole[-1].revision, True)


def _detail(principal: Principal, **condition: object) -> OperationDetail | None:
    operation = access.rows(Operation, principal).filter(**condition).select_related("study").first()
    if operation is None:
        return None
    trials = access.rows(Trial, principal).filter(study_id=operation.study_id, number__in=operation.trial_numbers)
    return OperationDetail(operation, operation.study, list(trials.order_by("number")))


def check_states(states: Sequence[str], allowed: Sequence[str]) -> list[str]:
    """Return the states if all of them are allowed. Raises InvalidInput."""
    for state in states:
        if state not in allowed:
            raise InvalidInput("states", state, ", ".join(allowed))
    return list(states)
