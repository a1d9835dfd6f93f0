"""The conditions that hold at any moment, and at the end. Each function raises AssertionError if one does not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.factories.agent import value
from trimtab.trial import Trial

# The largest difference of a measurement of a client from the value of its configuration.
NOISE = 1e-6


class Watched:
    """One study as it was seen: a finished trial never changes, and no trial disappears."""

    def __init__(self, name: str, budget: int) -> None:
        self.name = name
        self._budget = budget
        self._finished: dict[int, Trial] = {}

    def see(self, trials: Iterable[Trial]) -> None:
        """Compare a complete list of the study's trials with what was seen before."""
        listed = list(trials)
        numbers = [trial.number for trial in listed]
        assert numbers == list(range(1, len(numbers) + 1)), f"{self.name}: the numbers are {numbers}"
        assert len(numbers) <= self._budget, f"{self.name}: {len(numbers)} trials, but a budget of {self._budget}"
        by_number = {trial.number: trial for trial in listed}
        for number, before in self._finished.items():
            now = by_number.get(number)
            assert now is not None, f"{self.name}: trial {number} has disappeared"
            assert (now.state, now.metrics, now.params) == (before.state, before.metrics, before.params), (
                f"{self.name}: trial {number} was {before} and is {now}"
            )
        for trial in listed:
            if trial.state == "COMPLETED":
                expect_own_value(self.name, trial.number, trial.params, trial.metrics)
            if trial.state.finished:
                self._finished[trial.number] = trial

    def conclude(self, acknowledged: Sequence[Mapping[str, Any]]) -> None:
        """Check at the end that the budget is used up, and that each acknowledged result is stored, once."""
        assert len(self._finished) == self._budget, f"{self.name}: {len(self._finished)} trials have ended"
        told: dict[int, Mapping[str, Any]] = {}
        for line in acknowledged:
            number = int(line["trial"])
            assert number not in told, f"{self.name}: trial {number} was acknowledged to two clients"
            told[number] = line
            stored = self._finished[number]
            assert stored.state == "COMPLETED", f"{self.name}: trial {number} was acknowledged and is {stored.state}"
            assert dict(stored.metrics) == line["metrics"], f"{self.name}: trial {number} has {stored.metrics}"
            assert dict(stored.params) == line["params"], f"{self.name}: trial {number} has {stored.params}"


def expect_own_value(study: str, number: int, params: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
    """Check that a trial has the value of its own configuration."""
    expected = value(dict(params))
    assert set(metrics) == {"value"}, f"{study}: trial {number} has the metrics {metrics}"
    assert math.isclose(metrics["value"], expected, rel_tol=1e-12, abs_tol=NOISE), (
        f"{study}: trial {number} has {metrics['value']} in place of {expected}"
    )


def notes(folder: Path, study: str) -> list[dict[str, Any]]:
    """Return the acknowledged results from all clients of a study. A line that a kill has cut was not acknowledged."""
    found = []
    for path in sorted(folder.glob(f"{study}-*.notes")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found
