"""Where trials come from: the default first, then the study's designer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.algorithms.base import Batch
from service.algorithms.start import default_first
from service.core.errors import Internal
from service.core.lifecycle import TrialState
from service.core.space import Configuration, Scalar
from service.pipeline import state
from service.studies import actions
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy.principal import Principal


@dataclass(frozen=True, slots=True)
class Supply:
    """`missing` trials have to be computed by a worker; `exhausted`: the space holds no more."""

    trials: list[Trial]
    missing: int
    exhausted: bool


def supply(
    principal: Principal,
    study: Study,
    count: int,
    *,
    into: TrialState,
    client_id: str = "",
    fixed: Mapping[str, Scalar],
) -> Supply:
    """Make up to `count` new trials of a locked study, as far as that needs no costly designer."""
    default = None if study.default_done else default_first(spec_of(study).space, fixed)
    first = [] if default is None else [default]
    wanted = count - len(first)
    drawn: list[Configuration] = []
    exhausted = False
    if state.runs_in_request(study):
        drawn, exhausted = _draw(principal, study, wanted, first, fixed)
        wanted = 0
    study.default_done |= bool(first)
    trials = actions.add_trials(principal, study, first, state=into, origin="default", client_id=client_id)
    trials += actions.add_trials(principal, study, drawn, state=into, origin="suggested", client_id=client_id)
    note_exhausted(study, exhausted, fixed)
    return Supply(trials, wanted, exhausted)


def note_exhausted(study: Study, exhausted: bool, fixed: Mapping[str, Scalar]) -> None:
    """Keep on a locked study whether its space holds no more. A part of the space that was fixed says nothing of it."""
    if not fixed and exhausted != study.exhausted:
        study.exhausted = exhausted
        actions.stamp(study)


def _draw(
    principal: Principal,
    study: Study,
    count: int,
    first: Sequence[Configuration],
    fixed: Mapping[str, Scalar],
) -> tuple[list[Configuration], bool]:
    """Call the cheap designer of a locked study; `first` are given out beside what it suggests.

    The study changes only after the designer's last answer: one that fails leaves it as it was.
    """
    if count == 0:
        return [], False
    if state.uses_history(study):
        learner, pending = state.borrow(principal, study)
        pending += state.as_pending(first, study.next_number)
        batch = learner.designer.suggest(count, cursor=study.cursor, pending=pending, fixed=fixed)
        state.give_back(study, learner)
        _expect_some(study, batch)
        study.cursor = batch.cursor
        return list(batch.configurations), batch.exhausted
    spec = spec_of(study)
    designer = state.stateless_designer(study)
    # It knows its own sequence alone: the default, measured first, would come a second time.
    skips = not spec.problem.noisy and (study.default_done or bool(first))
    skip = spec.space.key(spec.space.default()) if skips else None
    found: list[Configuration] = []
    cursor, exhausted = study.cursor, False
    while len(found) < count and not exhausted:
        batch = designer.suggest(count - len(found), cursor=cursor, fixed=fixed)
        _expect_some(study, batch)
        found += [one for one in batch.configurations if skip is None or spec.space.key(one) != skip]
        cursor, exhausted = batch.cursor, batch.exhausted
    study.cursor = cursor
    return found, exhausted


def _expect_some(study: Study, batch: Batch) -> None:
    if not batch.configurations and not batch.exhausted:
        raise Internal("designer_failed", f"The designer {spec_of(study).algorithm!r} suggested nothing.")
