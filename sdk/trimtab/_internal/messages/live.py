"""Conversion of the state of a live study from messages."""

from collections.abc import Iterable

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.fields import from_message
from trimtab._internal.messages.status import from_study_state
from trimtab._internal.messages.trials import from_trial_state
from trimtab.live import (
    KeptSettings,
    LiveBrief,
    LiveBudget,
    LiveCheck,
    LiveInstance,
    LiveJobs,
    LiveOverview,
    LivePlan,
    LiveReading,
    LiveRollout,
    LiveStatus,
)


def from_live_status(message: pb.LiveStatus) -> LiveStatus:
    """Return the state of a live study."""
    return from_message(
        LiveStatus,
        message,
        state=from_study_state(message.state),
        plans=tuple(
            from_message(LivePlan, one, trial_state=from_trial_state(one.trial_state)) for one in message.plans
        ),
        kept=tuple(from_message(KeptSettings, one) for one in message.kept),
        budgets=tuple(from_message(LiveBudget, one) for one in message.budgets),
        instances=_instances(message.instances),
        jobs=from_message(LiveJobs, message.jobs) if message.HasField("jobs") else None,
        rollout=from_message(LiveRollout, message.rollout) if message.HasField("rollout") else None,
        checks=tuple(from_message(LiveCheck, one) for one in message.checks),
    )


def from_live_list(message: pb.ListLiveResponse) -> LiveOverview:
    """Return the live studies and their instances."""
    return LiveOverview(
        studies=tuple(from_message(LiveBrief, one, state=from_study_state(one.state)) for one in message.studies),
        instances=_instances(message.instances),
        left_off=message.left_off,
    )


def _instances(messages: Iterable[pb.LiveInstance]) -> tuple[LiveInstance, ...]:
    return tuple(
        from_message(
            LiveInstance,
            one,
            trial=one.trial or None,
            guards=tuple(from_message(LiveReading, guard) for guard in one.guards),
        )
        for one in messages
    )
