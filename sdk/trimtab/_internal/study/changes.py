"""Calls that change a study: its state, budget, final check and space."""

import uuid
from collections.abc import Mapping, Sequence
from types import EllipsisType

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.space import to_edit, to_range
from trimtab._internal.messages.spec import to_budget, to_final_check
from trimtab._internal.messages.status import from_earlier_trials, to_study_states
from trimtab._internal.study.handle import StudyHandle
from trimtab.method import FinalCheck
from trimtab.space import Parameter
from trimtab.spec import EarlierTrials, Outside, StudyState


def set_state(study: StudyHandle, state: StudyState, reason: str) -> None:
    """Change the state of the study."""
    [number] = to_study_states([state])
    request = pb.UpdateStudyStateRequest(name=study.name, state=number, reason=reason)
    study.keep(study.call(study.stub.UpdateStudyState, request))


def extend_budget(study: StudyHandle, limits: Mapping[str, float | EllipsisType | None]) -> None:
    """Change the limits of the budget that are not `...`."""
    budget, fields = to_budget({name: limit for name, limit in limits.items() if not isinstance(limit, EllipsisType)})
    request = pb.ExtendBudgetRequest(study=study.name, budget=budget, fields=fields)
    study.keep(study.call(study.stub.ExtendBudget, request))


def check(study: StudyHandle, settings: FinalCheck) -> None:
    """Begin a final check."""
    request = pb.CheckStudyRequest(study=study.name, final_check=to_final_check(settings), request_id=uuid.uuid4().hex)
    study.keep(study.call(study.stub.CheckStudy, request))


def change_space(study: StudyHandle, ranges: Mapping[str, object], validate_only: bool) -> Outside:
    """Change the ranges of parameters, and return how many trials lie outside."""
    request = pb.ChangeSpaceRequest(
        study=study.name,
        ranges={name: to_range(f"ranges.{name}", given) for name, given in ranges.items()},
        validate_only=validate_only,
    )
    answer = study.call(study.stub.ChangeSpace, request)
    study.keep(answer.study)
    return Outside(answer.finished_outside, answer.running_outside, answer.waiting_outside)


def edit_space(
    study: StudyHandle,
    *,
    add: Sequence[Parameter],
    remove: Sequence[str] | Mapping[str, object],
    fix: Mapping[str, object] | None,
    free: Sequence[str],
    budget: Mapping[str, float | None] | None,
    validate_only: bool,
    request_id: str | None,
) -> EarlierTrials:
    """Add, remove, fix and free parameters, and return how the trials so far count."""
    request = to_edit(study.name, study.spec.space, add=add, remove=remove, fix=fix or {}, free=free)
    if budget is not None:
        limits, fields = to_budget(budget)
        request.budget.CopyFrom(limits)
        request.budget_fields.CopyFrom(fields)
    request.validate_only = validate_only
    request.request_id = request_id or uuid.uuid4().hex
    answer = study.call(study.stub.EditSpace, request)
    study.keep(answer.study)
    return from_earlier_trials(answer.trials)
