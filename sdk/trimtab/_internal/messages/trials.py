"""Conversion of trials and notes from messages."""

from collections.abc import Sequence

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.values import from_duration, from_params, from_time, from_value, to_member
from trimtab.space import Parameter
from trimtab.trial import Measurement, Note, Trial, TrialState

_STATES = {state: pb.TrialState.Value(f"TRIAL_STATE_{state}") for state in TrialState}
_STATES_BACK = {number: state for state, number in _STATES.items()}


def from_trial(space: Sequence[Parameter], message: pb.Trial) -> Trial:
    """Return a trial, with its parameters in the order of the space."""
    return Trial(
        study=message.study,
        number=message.number,
        state=_STATES_BACK[message.state],
        params=from_params(space, message.params),
        metrics=dict(message.metrics),
        measurements=tuple(_from_measurement(measurement) for measurement in message.measurements),
        reason=message.reason,
        client_id=message.client_id,
        agent=message.agent,
        node=message.node,
        doubt=message.doubt,
        machine=message.machine,
        attempt=message.attempt,
        origin=message.origin,
        created_at=from_time(message.created_at),
        started_at=from_time(message.started_at),
        finished_at=from_time(message.finished_at),
        log=message.log,
        seconds=from_duration(message.elapsed) if message.HasField("elapsed") else None,
    )


def _from_measurement(message: pb.Measurement) -> Measurement:
    elapsed = from_duration(message.elapsed) if message.HasField("elapsed") else None
    return Measurement(message.step, dict(message.metrics), elapsed)


def from_note(message: pb.Note) -> Note:
    """Return a note."""
    return Note(
        study=message.study,
        trial=message.trial or None,
        text=message.text,
        tags=tuple(message.tags),
        attributes={name: from_value(value) for name, value in sorted(message.attributes.items())},
        changed_by=message.changed_by,
        changed_at=from_time(message.changed_at) if message.HasField("changed_at") else None,
    )


def to_trial_states(states: Sequence[TrialState | str]) -> list[pb.TrialState.ValueType]:
    """Return states of trials, given as states or names in upper or lower case. Raises InvalidInput."""
    return [_STATES[to_member(TrialState, f"states[{index}]", state)] for index, state in enumerate(states)]
