"""Conversion of trials and notes from messages."""

from collections.abc import Sequence

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.fields import from_message
from trimtab._internal.messages.values import from_duration, from_params, to_member
from trimtab.space import Parameter
from trimtab.trial import Interference, Measurement, Note, Trial, TrialState

_STATES = {state: pb.TrialState.Value(f"TRIAL_STATE_{state}") for state in TrialState}
_STATES_BACK = {number: state for state, number in _STATES.items()}


def from_trial(space: Sequence[Parameter], message: pb.Trial) -> Trial:
    """Return a trial, with its parameters in the order of the space."""
    return from_message(
        Trial,
        message,
        state=_STATES_BACK[message.state],
        params=from_params(space, message.params),
        measurements=tuple(from_message(Measurement, one) for one in message.measurements),
        seconds=from_duration(message.elapsed) if message.HasField("elapsed") else None,
        interference=from_message(Interference, message.interference) if message.HasField("interference") else None,
    )


def from_trial_state(number: int) -> TrialState:
    """Return the state of a trial."""
    return _STATES_BACK[number]  # type: ignore[index]


def from_note(message: pb.Note) -> Note:
    """Return a note."""
    return from_message(Note, message, trial=message.trial or None)


def to_trial_states(states: Sequence[TrialState | str]) -> list[pb.TrialState.ValueType]:
    """Return states of trials, given as states or names in upper or lower case. Raises InvalidInput."""
    return [_STATES[to_member(TrialState, f"states[{index}]", state)] for index, state in enumerate(states)]
