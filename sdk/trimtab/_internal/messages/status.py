"""Conversion of a study's status, and of the edits of its space, from messages."""

from collections.abc import Sequence

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.fields import from_message
from trimtab._internal.messages.values import to_member
from trimtab.method import Choice
from trimtab.spec import EarlierTrials, SpaceEdit, StartedFrom, StudyState, StudyStatus

_STATES = {state: pb.StudyState.Value(f"STUDY_STATE_{state}") for state in StudyState}
_STATES_BACK = {number: state for state, number in _STATES.items()}


def from_status(message: pb.Study) -> StudyStatus:
    """Return the status of a study."""
    choice = from_message(Choice, message.algorithm_choice) if message.HasField("algorithm_choice") else None
    return from_message(
        StudyStatus,
        message,
        state=_STATES_BACK[message.state],
        reason=message.state_reason,
        algorithm_choice=choice,
        space_size=int(message.space_size) if message.space_size else None,
        feasible_size=int(message.feasible_size) if message.feasible_size else None,
        started_from=tuple(from_message(StartedFrom, one) for one in message.started_from),
        space_edits=tuple(
            from_message(SpaceEdit, one, trials=from_earlier_trials(one.trials)) for one in message.space_edits
        ),
    )


def from_study_state(number: int) -> StudyState:
    """Return the state of a study."""
    return _STATES_BACK[number]  # type: ignore[index]


def from_earlier_trials(message: pb.EarlierTrials) -> EarlierTrials:
    """Return how the trials of a study count after an edit of its space."""
    return from_message(EarlierTrials, message)


def to_study_states(states: Sequence[StudyState | str]) -> list[pb.StudyState.ValueType]:
    """Return states of studies, given as states or names in upper or lower case. Raises InvalidInput."""
    return [_STATES[to_member(StudyState, f"states[{index}]", state)] for index, state in enumerate(states)]
