"""Counts how the trials of a study count in an edited space. A long history is read before the study is locked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from service.core.edits import EditedSpace
from service.core.lifecycle import TrialState
from service.studies.actions import OPEN_STATES
from service.studies.edit_records import EarlierTrials
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal


@dataclass(slots=True)
class _Fit:
    """How one trial counts. `misfit`: the parameter whose value leaves it out, None if it is used."""

    misfit: str | None
    imputed: bool
    is_default: bool
    state: str = ""


@dataclass(slots=True)
class Census:
    """The trials of one study, each with the way it counts in `space`."""

    space: EditedSpace
    _seen: int = 0
    _trials: dict[int, _Fit] = field(default_factory=dict)

    def read(self, principal: Principal, study: Study) -> None:
        """Read the trials that changed since the last call. With the study's lock, the counts are exact afterwards."""
        default = repr(self.space.searched.default())
        rows = access.rows(Trial, principal).filter(study_id=study.pk, revision__gt=self._seen)
        for number, state, params in rows.values_list("number", "state", "params"):
            if number not in self._trials:
                present = self.space.present(params)
                misfit = self.space.misfit(params) if present is None else None
                imputed = present is not None and self.space.is_imputed(params)
                self._trials[number] = _Fit(misfit, imputed, repr(present) == default)
            self._trials[number].state = state
        self._seen = study.revision

    def counts(self) -> EarlierTrials:
        """Return the counts for users."""
        fits = self._trials.values()
        left_out = Counter(fit.misfit for fit in fits if fit.misfit is not None)
        return EarlierTrials(
            total=len(fits),
            used=sum(fit.misfit is None for fit in fits),
            imputed=sum(fit.imputed for fit in fits),
            unfinished=sum(fit.state in OPEN_STATES for fit in fits),
            left_out=dict(sorted(left_out.items())),
            values=self.space.added,
        )

    def outside(self, *states: TrialState) -> int:
        """Return how many trials in these states are left out."""
        return sum(fit.misfit is not None and fit.state in states for fit in self._trials.values())

    def has_default(self) -> bool:
        """Return whether a trial that did not fail has measured the default configuration, or will."""
        return any(fit.is_default and fit.state != TrialState.FAILED for fit in self._trials.values())
