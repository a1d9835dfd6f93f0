import itertools

import pytest

from service.core.errors import Conflict
from service.core.lifecycle import (
    STEPS,
    LeaseState,
    OperationState,
    State,
    StudyState,
    TrialState,
    check_step,
)

STATES: dict[str, tuple[State, ...]] = {
    "study": tuple(StudyState),
    "trial": tuple(TrialState),
    "operation": tuple(OperationState),
    "lease": tuple(LeaseState),
}


@pytest.mark.parametrize("kind", list(STEPS))
def test_table_knows_only_states_of_its_kind(kind: str) -> None:
    steps = STEPS[kind]  # type: ignore[index]
    for old, following in steps.items():
        assert {type(old), *map(type, following)} == {type(STATES[kind][0])}
        assert old not in following, "the same state again is no step"


@pytest.mark.parametrize("kind", list(STEPS))
def test_check_step_agrees_with_the_table(kind: str) -> None:
    steps = STEPS[kind]  # type: ignore[index]
    for old, new in itertools.product(STATES[kind], repeat=2):
        if new in steps.get(old, ()):
            check_step(kind, old, new)  # type: ignore[arg-type]
            continue
        with pytest.raises(Conflict) as caught:
            check_step(kind, old, new)  # type: ignore[arg-type]
        assert caught.value.code == "invalid_step"
        assert caught.value.data == {"kind": kind, "old": str(old), "new": str(new)}


def test_measured_trials_and_aborted_studies_are_final() -> None:
    finished = {TrialState.COMPLETED, TrialState.INFEASIBLE, TrialState.FAILED, TrialState.PRUNED}
    assert set(TrialState) - STEPS["trial"].keys() == finished
    assert set(StudyState) - STEPS["study"].keys() == {StudyState.ABORTED}
    assert STEPS["study"][StudyState.COMPLETED] == {StudyState.ACTIVE}, "by more budget or a final check"
    assert set(OperationState) - STEPS["operation"].keys() == {OperationState.SUCCEEDED, OperationState.FAILED}


def test_trial_is_measured_only_while_active() -> None:
    for old in set(TrialState) - {TrialState.ACTIVE}:
        with pytest.raises(Conflict):
            check_step("trial", old, TrialState.COMPLETED)


def test_lost_lease_gives_its_trial_back() -> None:
    check_step("trial", TrialState.ACTIVE, TrialState.REQUESTED)
    check_step("lease", LeaseState.HELD, LeaseState.EXPIRED)
    # and its result, where it comes late and the trial was not given away yet, still counts
    check_step("lease", LeaseState.EXPIRED, LeaseState.SETTLED)
