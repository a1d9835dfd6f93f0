"""The conditions that hold at any moment, and at the end. Each function raises AssertionError if one does not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.chaos.studies import BUDGET, NOISE, STEPS, Method, at_step
from trimtab.trial import Trial


class Watched:
    """One study as it was seen: a finished trial never changes, and no trial disappears."""

    def __init__(self, name: str, method: Method) -> None:
        self.name = name
        self._method = method
        self._finished: dict[int, Trial] = {}

    @property
    def count(self) -> int:
        """The number of trials that have ended."""
        return len(self._finished)

    def see(self, trials: Iterable[Trial]) -> None:
        """Compare a complete list of the study's trials with what was seen before."""
        listed = list(trials)
        numbers = [trial.number for trial in listed]
        assert numbers == list(range(1, len(numbers) + 1)), f"{self.name}: the numbers are {numbers}"
        checks = sum(trial.origin == "check" for trial in listed)
        searched = len(listed) - checks
        assert searched <= BUDGET, f"{self.name}: {searched} trials, but a budget of {BUDGET}"
        assert checks <= self._method.most_checks, f"{self.name}: {checks} trials of the final check"
        by_number = {trial.number: trial for trial in listed}
        for number, before in self._finished.items():
            now = by_number.get(number)
            assert now is not None, f"{self.name}: trial {number} has disappeared"
            assert (now.state, now.metrics, now.params) == (before.state, before.metrics, before.params), (
                f"{self.name}: trial {number} was {before} and is {now}"
            )
        for trial in listed:
            expect_own_value(self.name, trial)
            if trial.state.finished:
                self._finished[trial.number] = trial

    def conclude(self, acknowledged: Sequence[Mapping[str, Any]]) -> None:
        """Check at the end that the budget is used up, and that each acknowledged result is stored, once."""
        checks = sum(trial.origin == "check" for trial in self._finished.values())
        searched = len(self._finished) - checks
        assert searched == BUDGET, f"{self.name}: {searched} trials have ended"
        assert bool(checks) == bool(self._method.most_checks), f"{self.name}: {checks} trials of the final check"
        told: set[int] = set()
        for line in acknowledged:
            number = int(line["trial"])
            stored = self._finished[number]
            assert dict(stored.params) == line["params"], f"{self.name}: trial {number} has {stored.params}"
            assert stored.state == line["state"], (
                f"{self.name}: trial {number} was acknowledged as {line['state']} and is {stored.state}"
            )
            if stored.state == "COMPLETED":
                assert number not in told, f"{self.name}: trial {number} was acknowledged to two clients"
                told.add(number)
                assert dict(stored.metrics) == line["metrics"], f"{self.name}: trial {number} has {stored.metrics}"


def expect_own_value(study: str, trial: Trial) -> None:
    """Check that a trial that has ended has the value of its own configuration, or one of a step if it is PRUNED."""
    assert trial.state != "INFEASIBLE", f"{study}: trial {trial.number} is INFEASIBLE: {trial.reason}"
    if trial.state not in ("COMPLETED", "PRUNED"):
        return
    allowed = [STEPS] if trial.state == "COMPLETED" else range(1, STEPS + 1)
    assert set(trial.metrics) == {"value"}, f"{study}: trial {trial.number} has the metrics {trial.metrics}"
    expected = [at_step(trial.params, step) for step in allowed]
    assert any(math.isclose(trial.metrics["value"], one, rel_tol=1e-12, abs_tol=NOISE) for one in expected), (
        f"{study}: trial {trial.number} ({trial.state}) has {trial.metrics['value']} in place of {expected}"
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
