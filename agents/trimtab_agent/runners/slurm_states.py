"""Slurm's job states and their meaning for trials."""

import re
from collections.abc import Mapping
from typing import Literal

from trimtab_agent.runners.base import JobState
from trimtab_agent.runners.batch import Meaning


def _queued() -> Meaning:
    return Meaning(JobState.QUEUED)


def _running() -> Meaning:
    return Meaning(JobState.RUNNING)


_infeasible = Meaning.infeasible
_failed = Meaning.failed

# Every state that squeue and sacct print. A result from the supervisor takes precedence over all of these.
STATES: Mapping[str, Meaning] = {
    # waits for resources, its turn or a person (held); some reasons mean that it never starts, see HOPELESS
    "PENDING": _queued(),
    # ended by an administrator, a preempting job or a failed node; Slurm starts it again by itself
    "REQUEUED": _queued(),
    # the same, in a federation of clusters
    "REQUEUE_FED": _queued(),
    # requeued, and held until somebody releases it; see HOPELESS
    "REQUEUE_HOLD": _queued(),
    # the same, marked by an exit code that the site has chosen for it
    "SPECIAL_EXIT": _queued(),
    # its reservation is gone: held until somebody releases it
    "RESV_DEL_HOLD": _queued(),
    # has nodes that boot or are set up; prologs and the stage-in of burst buffers belong here
    "CONFIGURING": _queued(),
    "POWER_UP_NODE": _queued(),
    "RUNNING": _running(),
    # is changing its size
    "RESIZING": _running(),
    # is receiving a signal
    "SIGNALING": _running(),
    # suspended by `scontrol suspend` or gang scheduling, while others use its nodes; its time limit continues
    "SUSPENDED": _running(),
    # stopped by SIGSTOP; it keeps its nodes
    "STOPPED": _running(),
    # its processes are ending, or the epilog runs; the final state follows
    "COMPLETING": _running(),
    # a burst buffer is writing its data; the processes have ended
    "STAGE_OUT": _running(),
    # the batch script ended with 0, so there must be a result that is not visible here
    "COMPLETED": _failed("the job has completed without a visible result: check that the job's folder is shared"),
    # the batch script failed: the supervisor was killed or could not be started on that node
    "FAILED": _failed("the trial's supervisor process ended without a result"),
    # somebody other than the agent has cancelled it
    "CANCELLED": _failed("the job was cancelled in Slurm, not by the service"),
    # time limit of the job, partition or reservation; it includes builds and repeats
    "TIMEOUT": _infeasible("did not end within the job's time limit in Slurm"),
    # `--deadline` has passed
    "DEADLINE": _infeasible("did not end before the job's deadline in Slurm"),
    # the job needed more memory than it had
    "OUT_OF_MEMORY": _infeasible("needed more memory than Slurm gave the job"),
    # replaced by a job of higher priority
    "PREEMPTED": _failed("the job was preempted by another one"),
    "NODE_FAIL": _failed("a node of the job failed"),
    "BOOT_FAIL": _failed("a node of the job could not be booted"),
    "LAUNCH_FAILED": _failed("the job could not be launched on its nodes"),
    "RECONFIG_FAIL": _failed("a node of the job could not be set up"),
    # another cluster of a federation has taken the job
    "REVOKED": _failed("the job was revoked: another cluster of the federation took it"),
}
# A state of a later Slurm version is no reason to give up a trial.
UNKNOWN = Meaning(JobState.RUNNING)

# Why a pending job never starts unless somebody changes the job or the cluster. It is cancelled, and its trial gets
# this reason. If the component's parameters are among the requested options, the configuration is infeasible; otherwise
# the trial has failed.
HOPELESS: Mapping[str, str] = {
    "BadConstraints": "no node can ever satisfy the job's request",
    "PartitionNodeLimit": "the job requests more or fewer nodes than the partition allows",
    "PartitionTimeLimit": "the job requests more time than the partition allows",
    "PartitionConfig": "the partition cannot satisfy the job's request",
    "DependencyNeverSatisfied": "a job that this one depends on has failed",
    "AccountNotAllowed": "the account may not use the partition",
    "QOSNotAllowed": "the quality of service may not be used",
    "InvalidAccount": "the account is not valid",
    "InvalidQOS": "the quality of service is not valid",
    "JobHoldMaxRequeue": "the job was requeued too often and is held",
    # Slurm prints these two with blanks.
    "job requeued in held state": "the job was requeued and is held",
    "launch failed requeued held": "the job could not be launched on its nodes and is held",
}
# The reasons that another configuration would not change.
ALWAYS_FAILED = {
    "DependencyNeverSatisfied",
    "AccountNotAllowed",
    "QOSNotAllowed",
    "InvalidAccount",
    "InvalidQOS",
    "JobHoldMaxRequeue",
    "job requeued in held state",
    "launch failed requeued held",
}

# Messages of Slurm's programs while its daemons or munge are away or busy. The same call may succeed later.
PASSING = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted|Connection refused"
    r"|Connection reset|temporarily un|in standby mode|Transport endpoint|Communication (connection|shutdown) failure"
    r"|Unexpected message received|Insufficient data|Message (receive|send) failure|I/O error writing script"
    r"|[Mm]unge (encode|decode) failed|Protocol authentication error|Invalid authentication credential"
    r"|authentication: Socket communication error|Header lengths are longer"
    r"|Slurm(ctld)? is (busy|not ready)|Unable to load job|Too many open files",
)
# Message of sbatch if an account has too many jobs, or requests more than its limit.
LIMIT = re.compile(r"job submit limit")
# Messages of sbatch if the cluster cannot satisfy a request. The last one comes from workloads/burst-buffer.
TOO_MUCH = re.compile(
    r"Requested node configuration is not available|More processors requested than permitted"
    r"|Node count specification invalid|Memory (required by task|specification can not)|Invalid feature specification"
    r"|generic resource|Invalid license specification|Requested (time|partition) .*(invalid|limit|not available)"
    r"|Invalid --[\w-]+ specification|Invalid numeric value|Invalid node name specified"
    r"|burst buffer: .* is not allowed\. Use \d+ to \d+",
)

# Message of sbatch if an array is larger than the site allows.
ARRAY = re.compile(r"Invalid job array specification")

# Why a pending job waits for a person: its trial keeps waiting, and people see this reason. The keys are Slurm's
# reasons up to the first comma, after which details follow.
HELD: Mapping[str, str] = {
    "JobHeldUser": "it is held; its user can release it with `scontrol release`",
    "JobHeldAdmin": "it is held by an administrator",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is not active",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    # the same reason from Slurm's main scheduler
    "Nodes required for job are DOWN": "nodes that it needs are down, drained or reserved",
    "ReservationDeleted": "its reservation is gone",
    "NodeDown": "a node that it needs is down",
}

Refusal = Literal["passing", "limit", "array", "too much", "other"]


def meaning_of(state: str) -> Meaning:
    """Return the meaning of a state."""
    return STATES.get(state, UNKNOWN)


def refusal(message: str) -> Refusal:
    """Return the kind of an error message of Slurm's programs."""
    if PASSING.search(message):
        return "passing"
    if LIMIT.search(message):
        return "limit"
    if ARRAY.search(message):
        return "array"
    return "too much" if TOO_MUCH.search(message) else "other"
