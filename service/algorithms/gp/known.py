"""A study's trials as runs, to which processes are fitted.

The state of a trial determines what it shows:

- COMPLETED: its metrics. If a metric is missing or not finite, the trial shows only that the configuration works.
- PRUNED: a bound. The run was stopped because it was no better than others, so it counts as no better than the best
  value before it. Without a finite value it counts as no better than the median, and before any trial has completed it
  shows only that the configuration works.
- INFEASIBLE: the configuration does not work.
- FAILED: nothing, because the machine was at fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from service.algorithms.gp.levels import Levels
from service.algorithms.gp.measured_runs import BoolArray, Runs
from service.core.encoding import FloatArray
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.trial import TrialRecord

# The additional variance of a run from before the system changed, as a share of the variance of all values. Such a run
# still tells which configurations are good, but a new one outweighs it.
_STALE = 0.25


class Known:
    """The trials of a study, in the order in which they finished, with their encoded `rows`."""

    def __init__(self, problem: Problem, trials: Sequence[TrialRecord], rows: FloatArray) -> None:
        self._problem, self._trials, self._rows = problem, trials, rows
        self.levels = Levels(problem, trials)

    def objectives(self) -> list[Runs]:
        """Return the measured and pruned runs for each objective; all objectives have the same rows.

        Values are relative to the level of their context.
        """
        bounded = np.array([trial.state == TrialState.PRUNED for trial in self._trials], dtype=np.bool_)
        completed = np.array([trial.state == TrialState.COMPLETED for trial in self._trials], dtype=np.bool_)
        table = self._values()
        completed &= np.isfinite(table).all(1)
        if not completed.any():
            return []
        for place in np.flatnonzero(bounded).tolist():
            before = table[:place][completed[:place]]
            if len(before):
                known = np.isfinite(table[place])
                table[place] = np.where(known, np.maximum(table[place], before.min(0)), np.median(before, axis=0))
        places = np.flatnonzero(completed | (bounded & np.isfinite(table).all(1))).tolist()
        stale = np.array([_STALE if self._trials[place].stale else 0.0 for place in places])
        return [Runs.of(self._rows[places], column, bounded[places], stale) for column in table[places].T]

    def _values(self) -> FloatArray:
        """Return the values of all trials times the objectives' signs, [n, m]; NaN where there is none."""
        metrics = self._problem.metrics
        values = [[trial.metrics.get(metric, math.nan) for metric in metrics] for trial in self._trials]
        table = np.array(values, dtype=np.float64).reshape(-1, len(metrics)) * self._problem.signs()
        if not self._problem.context:
            return table
        return table / self.levels.of(trial.configuration for trial in self._trials)[:, None]

    def margins(self) -> list[Runs]:
        """Return the runs of each outcome constraint, whose values are the margins by which it was broken."""
        found = []
        for constraint in self._problem.outcome_constraints:
            margins = [
                constraint.margin(trial.metrics) if trial.state == TrialState.COMPLETED else math.nan
                for trial in self._trials
            ]
            places = [place for place, margin in enumerate(margins) if math.isfinite(margin)]
            found.append(Runs.of(self._rows[places], np.array([margins[place] for place in places])))
        return found

    def durations(self) -> Runs:
        """Return the completed runs whose running time is known, with its logarithm; empty if there is none."""
        timed = [
            (place, math.log(trial.seconds))
            for place, trial in enumerate(self._trials)
            if trial.state == TrialState.COMPLETED and trial.seconds is not None and trial.seconds > 0.0
        ]
        places = [place for place, _ in timed]
        return Runs.of(self._rows[places], np.array([seconds for _, seconds in timed]))

    def works(self) -> Runs:
        """Return the runs that show whether a configuration works: -1 if it did, else 1."""
        known = [place for place, trial in enumerate(self._trials) if trial.state != TrialState.FAILED]
        labels = [1.0 if self._trials[place].state == TrialState.INFEASIBLE else -1.0 for place in known]
        return Runs.of(self._rows[known], np.array(labels))

    def acceptable(self, rows: FloatArray) -> BoolArray:
        """Return a flag for each of b rows: whether more than half of its runs met the outcome constraints."""
        if not self._problem.outcome_constraints:
            return np.ones(len(rows), dtype=np.bool_)
        votes: dict[bytes, int] = {}
        for row, trial in zip(self._rows, self._trials, strict=True):
            if trial.state == TrialState.COMPLETED:
                vote = 1 if self._problem.acceptable(trial.metrics) else -1
                votes[row.tobytes()] = votes.get(row.tobytes(), 0) + vote
        return np.array([votes.get(row.tobytes(), 0) > 0 for row in rows], dtype=np.bool_)
