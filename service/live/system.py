"""The system that a live study tunes: what its agents offer of it, and what is in force there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from service.core.live_results import as_configuration
from service.core.space import Configuration
from service.live.models import LiveStudy
from service.studies.models import Study
from service.studies.specs import StudySpec, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

# The component's own values, where its agent has not told them.
USUAL_WARM_UP, USUAL_BLOCK = 5.0, 60.0


@dataclass(frozen=True, slots=True)
class Offered:
    """A component's statements about its live system. `instances`: the names of those that its agent can switch."""

    instances: tuple[str, ...] = ()
    restart: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    guards: tuple[Mapping[str, Any], ...] = ()
    warm_up: float = USUAL_WARM_UP
    block: float = USUAL_BLOCK

    @classmethod
    def of(cls, components: Iterable[Mapping[str, Any]], name: str) -> Offered:
        """Return what is said in the first of these components of agents that has this name."""
        found = next((one for one in components if one["name"] == name), {})
        live = found.get("live") or {}
        return cls(
            instances=tuple(found.get("applications", ())),
            restart=frozenset(live.get("restart", ())),
            forbidden=frozenset(live.get("forbidden", ())),
            guards=tuple(live.get("guards", ())),
            warm_up=live.get("warm_up") or USUAL_WARM_UP,
            block=live.get("block") or USUAL_BLOCK,
        )

    @property
    def slowest_guard(self) -> float:
        """The seconds after which the slowest guard notices that its limit is exceeded."""
        return max((float(one.get("for_seconds", 0.0)) for one in self.guards), default=0.0)


def state_of(principal: Principal, study: Study) -> LiveStudy:
    """Return what is known of the system of a live study; a row that is not stored yet before the first result."""
    found = access.rows(LiveStudy, principal).filter(pk=study.pk).first()
    return found or LiveStudy(study_id=study.pk)


def settings_in_force(spec: StudySpec, state: LiveStudy) -> Configuration:
    """Return the settings in force as a configuration; those that are not known yet are the defaults."""
    return as_configuration(spec.space, state.incumbent or {})


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the parameters that differ, each with its two values."""
    return {name: [before.get(name), value] for name, value in after.items() if before.get(name) != value}


def has_instances(spec: StudySpec) -> bool:
    """Return whether agents run the trials of a study: those of a live study of jobs are the jobs of users."""
    return spec.live is None or spec.live.record is None


def is_live(study: Study) -> bool:
    """Return whether a study tunes a system that serves."""
    return bool(study.component) and spec_of(study).live is not None
