"""Which of a configuration's runs count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.trial import TrialRecord, trusted, usual_share


def run(number: int, share: float | None = None, *, stale: bool = False, doubtful: bool = False) -> TrialRecord:
    measured = None if share is None else Interference(share=share, unaffected=("cpu_seconds",))
    return TrialRecord(
        number, {"x": 0.5}, TrialState.COMPLETED, {}, doubtful=doubtful, stale=stale, interference=measured
    )


def numbers(trials: Sequence[TrialRecord], usual: float = 0.0, metric: str = "seconds") -> list[int]:
    return [trial.number for trial in trusted(trials, usual, metric)]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([0.5, 0.0, 0.0], [2, 3]),
        ([0.5, 0.4, 0.0, 0.0], [3, 4]),
        # A single undisturbed run may be the lucky one.
        ([0.5, 0.0], [1, 2]),
        ([0.5, 0.5, 0.5, 0.5, 0.0], [1, 2, 3, 4, 5]),
        # The disturbed runs are the majority.
        ([0.5, 0.5, 0.5, 0.0, 0.0], [1, 2, 3, 4, 5]),
        ([0.5, 0.5, 0.5], [1, 2, 3]),
        ([0.1, 0.05, 0.0], [1, 2, 3]),
        ([None, 0.5, None], [1, 3]),
    ],
)
def test_disturbed_runs_are_left_out_if_enough_others_remain(shares: list[float | None], expected: list[int]) -> None:
    assert numbers([run(number, share) for number, share in enumerate(shares, 1)]) == expected


def test_a_doubtful_run_without_a_measured_share_is_disturbed() -> None:
    assert numbers([run(1, doubtful=True), run(2), run(3)]) == [2, 3]


def test_what_is_usual_in_the_study_disturbs_no_run() -> None:
    shares = [0.3, 0.35, 0.38, 0.8]
    trials = [run(number, share) for number, share in enumerate(shares, 1)]
    assert usual_share(trials) == 0.3
    assert numbers(trials) == [1, 2, 3, 4]
    assert numbers(trials, usual_share(trials)) == [1, 2, 3]


def test_the_usual_share_is_the_lower_quartile() -> None:
    assert usual_share([]) == 0.0
    assert usual_share([run(1), run(2), run(3, 0.5)]) == 0.0
    assert usual_share([run(number, number / 10) for number in range(1, 10)]) == pytest.approx(0.3)


def test_a_metric_that_no_other_process_changes_keeps_all_runs() -> None:
    trials = [run(1, 0.5), run(2, 0.0), run(3, 0.0)]
    assert numbers(trials, metric="cpu_seconds") == [1, 2, 3]


def test_stale_runs_count_only_without_others() -> None:
    assert numbers([run(1, stale=True), run(2, 0.5)]) == [2]
    assert numbers([run(1, stale=True), run(2, stale=True)]) == [1, 2]
