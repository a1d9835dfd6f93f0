"""Conversion of a study's status, and of the edits of its space, from messages."""

from collections.abc import Sequence

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.values import from_time, from_values, to_member
from trimtab.method import Choice
from trimtab.spec import EarlierTrials, SpaceEdit, StartedFrom, StudyState, StudyStatus

_STATES = {state: pb.StudyState.Value(f"STUDY_STATE_{state}") for state in StudyState}
_STATES_BACK = {number: state for state, number in _STATES.items()}


def from_status(message: pb.Study) -> StudyStatus:
    """Return the status of a study."""
    return StudyStatus(
        state=_STATES_BACK[message.state],
        reason=message.state_reason,
        revision=message.revision,
        trial_count=message.trial_count,
        finished_count=message.finished_count,
        space_exhausted=message.space_exhausted,
        created_at=from_time(message.created_at),
        updated_at=from_time(message.updated_at),
        algorithm_choice=Choice(message.algorithm_choice.name, message.algorithm_choice.reason)
        if message.HasField("algorithm_choice")
        else None,
        search_end_reason=message.search_end_reason,
        space_version=message.space_version,
        started_from=tuple(StartedFrom(one.study, one.taken, one.passed_over) for one in message.started_from),
        fixed=from_values(message.fixed),
        removed=from_values(message.removed),
        imputed=from_values(message.imputed),
        space_edits=tuple(map(_from_edit, message.space_edits)),
    )


def _from_edit(message: pb.SpaceEdit) -> SpaceEdit:
    return SpaceEdit(
        version=message.version,
        added=tuple(message.added),
        removed=from_values(message.removed),
        fixed=from_values(message.fixed),
        freed=tuple(message.freed),
        trials=from_earlier_trials(message.trials),
        actor=message.actor,
        made_at=from_time(message.made_at),
    )


def from_earlier_trials(message: pb.EarlierTrials) -> EarlierTrials:
    """Return how the trials of a study count after an edit of its space."""
    return EarlierTrials(
        total=message.total,
        used=message.used,
        imputed=message.imputed,
        unfinished=message.unfinished,
        left_out=dict(message.left_out),
        values=from_values(message.values),
        text=message.text,
    )


def to_study_states(states: Sequence[StudyState | str]) -> list[pb.StudyState.ValueType]:
    """Return states of studies, given as states or names in upper or lower case. Raises InvalidInput."""
    return [_STATES[to_member(StudyState, f"states[{index}]", state)] for index, state in enumerate(states)]
