"""The warm start: a new study first measures the best configurations of earlier studies.

A study takes over configurations and no results. A result depends on the conditions of its measurement (machine,
versions, load, input, even another metric), and a study does not know enough to decide whether they are the same. An
old result would mislead the model, and its difference from a default that is measured today would not be a gain. To
measure a configuration again costs one trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from service.algorithms.start import default_first
from service.core.errors import InvalidInput
from service.core.space import Configuration
from service.results.analysis import leaders
from service.studies.models import Study
from service.studies.specs import StartedFrom, StudySpec, spec_of
from service.tenancy import access
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal
from service.trials.supply import MOST_EARLIER


@dataclass(frozen=True, slots=True)
class WarmStart:
    """The first configurations of a study that starts from earlier ones.

    `default` is measured first. It is None if there are no `configurations`, or if the space has no default that can
    be measured. `configurations` follow in this order. `started_from` has one entry for each earlier study.
    """

    default: Configuration | None
    configurations: Sequence[Configuration]
    started_from: tuple[StartedFrom, ...]


def warm_start(principal: Principal, spec: StudySpec, *, may_lag: bool = False) -> WarmStart:
    """Return the configurations with which a new study of this spec begins.

    Each earlier study contributes its recommended configuration and the next best ones, or a part of its Pareto set
    where it has several objectives. The studies take turns. At most MOST_EARLIER configurations are taken in all, each
    of them once, and no more than the budget allows. `Space.adopt` fits them to the new space; a configuration that
    lies outside is skipped. `may_lag` is passed to `analyse`. Raises InvalidInput (`study_not_found`,
    `other_component`) and Forbidden.
    """
    studies = _studies(principal, spec)
    space = spec.space
    default = default_first(space) if studies else None
    taken = set() if default is None else {space.key(default)}
    room = MOST_EARLIER if spec.budget.max_trials is None else min(MOST_EARLIER, spec.budget.max_trials - len(taken))
    adopted = [
        [space.adopt({**spec_of(study).whole_space.left, **one}) for one in leaders(principal, study, may_lag=may_lag)]
        for study in studies
    ]
    counts = [0] * len(studies)
    configurations: list[Configuration] = []
    for turn in zip_longest(*adopted):
        for place, one in enumerate(turn):
            if one is not None and space.key(one) not in taken and len(configurations) < room:
                taken.add(space.key(one))
                configurations.append(one)
                counts[place] += 1
    started_from = tuple(
        StartedFrom(study.name, count, found.count(None))
        for study, count, found in zip(studies, counts, adopted, strict=True)
    )
    return WarmStart(default if configurations else None, configurations, started_from)


def _studies(principal: Principal, spec: StudySpec) -> list[Study]:
    """Return the studies to start from, in the order of the spec."""
    if not spec.start_from:
        return []
    for name in spec.start_from:
        # A token that is limited to one study must not read the results of another.
        require(principal, Action.STUDY_READ, name)
    found = {study.name: study for study in access.rows(Study, principal).filter(name__in=spec.start_from)}
    component = "" if spec.execution is None else spec.execution.component
    for index, name in enumerate(spec.start_from):
        field = f"start_from[{index}]"
        if name not in found:
            raise InvalidInput(field, name, "the name of an existing study", code="study_not_found")
        if found[name].component != component:
            allowed = f"a study of the component {component!r}" if component else "a study without a component"
            raise InvalidInput(field, name, allowed, code="other_component", component=found[name].component)
    return [found[name] for name in spec.start_from]
