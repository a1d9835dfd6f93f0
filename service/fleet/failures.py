"""Failures that show that a configuration cannot work, although each of them alone could be the machine's fault."""

from __future__ import annotations

from service.core.lifecycle import LeaseState, TrialState
from service.core.reasons import Reason, data_of, stored
from service.fleet.models import Lease
from service.studies.change import Work
from service.studies.models import Trial
from service.tenancy import access

# A configuration that has failed so often cannot work.
MOST_FAILURES = 2
# What the processes of a trial themselves have shown, as codes of the agent. The other failures, such as a lost node or
# a job that another one has preempted, say nothing about the configuration.
_SHOWN = ("killed", "listed_exit_code", "build_failed", "header_failed", "header_too_slow")


def shows_the_configuration(work: Work, lease: Lease) -> bool:
    """Return whether the configuration of a lease that has just failed is to blame.

    It is if it has failed MOST_FAILURES times, in one trial or several, has never been COMPLETED, and if the machines
    where it failed work for others: the latest trial of another configuration that ended there was COMPLETED.
    """
    leases = access.rows(Lease, work.principal).defer("invocation")
    ended = leases.filter(study_id=work.study.pk, state=LeaseState.SETTLED)
    key = lease.trial.key
    failed = [one for one in ended.filter(trial__key=key) if (one.settlement or {}).get("code") in _SHOWN]
    if lease.pk not in [one.pk for one in failed] or len(failed) < MOST_FAILURES:
        return False
    own = access.rows(Trial, work.principal).filter(study_id=work.study.pk, key=key)
    if own.filter(state=TrialState.COMPLETED).exists():
        return False
    others = ended.exclude(trial__key=key).order_by("-settled_at", "-granted_at")
    for agent_id, node in {(one.agent_id, one.node) for one in failed}:
        latest = others.filter(agent_id=agent_id, node=node).first()
        if latest is None or latest.outcome != "completed":
            return False
    return True


def explained(reason: str) -> Reason:
    """Return the reason of the latest failure with the conclusion that the configuration is to blame."""
    text = f"Failed {MOST_FAILURES} times, on machines where other configurations work: {reason}"
    cause = data_of(reason, stored(reason))
    return Reason(text, "failed_again", failures=MOST_FAILURES, reason=reason.partition("\n")[0], cause=cause)
