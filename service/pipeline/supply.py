"""Where trials come from: the default first, then the study's designer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    study.default_done |= bool(first)
    if state.runs_in_request(study):
        drawn, exhausted = _draw(study, wanted, fixed)
        wanted = 0
    trials = actions.add_trials(principal, study, first, state=into, origin="default", client_id=client_id)
    trials += actions.add_trials(principal, study, drawn, state=into, origin="suggested", client_id=client_id)
    note_exhausted(study, exhausted, fixed)
    return Supply(trials, wanted, exhausted)


def note_exhausted(study: Study, exhausted: bool, fixed: Mapping[str, Scalar]) -> None:
    """Keep on a locked study whether its space holds no more. A part of the space that was fixed says nothing of it."""
    if not fixed and exhausted != study.exhausted:
        study.exhausted = exhausted
        actions.stamp(study)


def _draw(study: Study, count: int, fixed: Mapping[str, Scalar]) -> tuple[list[Configuration], bool]:
    spec = spec_of(study)
    designer = state.stateless_designer(study)
    # The designer knows its own sequence alone: the default, measured first, would come a second time.
    skip = spec.space.key(spec.space.default()) if study.default_done and not spec.problem.noisy else None
    found: list[Configuration] = []
    while len(found) < count:
        batch = designer.suggest(count - len(found), cursor=study.cursor, fixed=fixed)
        study.cursor = batch.cursor
        found += [one for one in batch.configurations if skip is None or spec.space.key(one) != skip]
        if batch.exhausted:
            return found, True
        if not batch.configurations:
            raise Internal("designer_failed", f"The designer {spec.algorithm!r} suggested nothing.")
    return found, False
