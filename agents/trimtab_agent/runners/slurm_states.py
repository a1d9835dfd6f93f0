"""What Slurm says of a job, and what that means for its trial."""

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

# Every state that squeue and sacct print. A result that the supervisor has left goes before all of these.
STATES: Mapping[str, Meaning] = {
    # waits for resources, for its turn, or for a person (held); some reasons mean that it would for ever, see HOPELESS
    "PENDING": _queued(),
    # was ended by an administrator or a preempting job, or its node has failed; Slurm starts it again by itself
    "REQUEUED": _queued(),
    # the same, in a federation of clusters
    "REQUEUE_FED": _queued(),
    # requeued, and held until somebody lets it go; without a reason of a person's, see HOPELESS
    "REQUEUE_HOLD": _queued(),
    # the same, marked by an exit code that the site has chosen for it
    "SPECIAL_EXIT": _queued(),
    # its reservation is gone: held until somebody lets it go
    "RESV_DEL_HOLD": _queued(),
    # has nodes, which are booting or being set up; prologs and burst buffers' stage-in come here
    "CONFIGURING": _queued(),
    "POWER_UP_NODE": _queued(),
    "RUNNING": _running(),
    # changes its size
    "RESIZING": _running(),
    # is being sent a signal
    "SIGNALING": _running(),
    # stopped by `scontrol suspend` or by gang scheduling, with its nodes kept by others; the trial's clock goes on
    "SUSPENDED": _running(),
    # stopped by SIGSTOP, its nodes kept for it
    "STOPPED": _running(),
    # its processes are being ended, or the epilog runs; how it ended comes next
    "COMPLETING": _running(),
    # a burst buffer's data are on their way out; the processes have ended
    "STAGE_OUT": _running(),
    # the batch script ended with 0, so that a result must be there: the shared folder has lost it
    "COMPLETED": _failed("the job has completed, but its result did not appear in the job's folder: is that shared?"),
    # the batch script ended otherwise: the supervisor was killed or could not be started on that node
    "FAILED": _failed("the trial's supervisor process ended without a result"),
    # somebody else than the agent has cancelled it
    "CANCELLED": _failed("the job was cancelled in Slurm, not by the service"),
    # the time limit of the job, the partition or the reservation: builds and repeats count
    "TIMEOUT": _infeasible("did not end within the job's time limit in Slurm"),
    # `--deadline` has come
    "DEADLINE": _infeasible("did not end before the job's deadline in Slurm"),
    # more memory than the job was given
    "OUT_OF_MEMORY": _infeasible("ran out of the memory that Slurm gave the job"),
    # made way for a job of higher priority
    "PREEMPTED": _failed("the job was preempted by another one"),
    "NODE_FAIL": _failed("a node of the job failed"),
    "BOOT_FAIL": _failed("a node of the job could not be booted"),
    "LAUNCH_FAILED": _failed("the job could not be launched on its nodes"),
    "RECONFIG_FAIL": _failed("a node of the job could not be set up"),
    # another cluster of a federation has taken the job
    "REVOKED": _failed("the job was revoked: another cluster of the federation took it"),
}
# a state of a later Slurm: it is no reason to give a trial up
UNKNOWN = Meaning(JobState.RUNNING)

# Why a pending job never starts unless somebody changes it or the cluster. It is cancelled, and its trial told why:
# where the component itself asks the scheduler for something, that may be what cannot be had, so that the
# configuration is infeasible; else it has failed.
HOPELESS: Mapping[str, str] = {
    "BadConstraints": "no node can ever have what the job asks for",
    "PartitionNodeLimit": "the job asks for more or fewer nodes than the partition allows",
    "PartitionTimeLimit": "the job asks for more time than the partition allows",
    "PartitionConfig": "the partition does not have what the job asks for",
    "DependencyNeverSatisfied": "a job that this one depends on has failed",
    "AccountNotAllowed": "the account may not use the partition",
    "QOSNotAllowed": "the quality of service may not be used",
    "InvalidAccount": "the account is not valid",
    "InvalidQOS": "the quality of service is not valid",
    "JobHoldMaxRequeue": "the job was requeued too often and is held",
    # these two are printed with blanks
    "job requeued in held state": "the job was requeued and is held",
    "launch failed requeued held": "the job could not be launched on its nodes and is held",
}
# those of them that another configuration would not mend
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

# What Slurm's programs say while its daemons, or munge's, are away or busy: the same call later may succeed.
PASSING = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted|Connection refused"
    r"|Connection reset|temporarily un|in standby mode|Transport endpoint|Communication (connection|shutdown) failure"
    r"|Unexpected message received|Insufficient data|Message (receive|send) failure|I/O error writing script"
    r"|[Mm]unge (encode|decode) failed|Protocol authentication error|Invalid authentication credential"
    r"|authentication: Socket communication error|Header lengths are longer"
    r"|Slurm(ctld)? is (busy|not ready)|Unable to load job|Too many open files",
)
# What sbatch says where an account has as many jobs as it may have, or asks for more than it may ever have.
LIMIT = re.compile(r"job submit limit")
# What sbatch says when it is asked for more than the cluster has, the last in the words of workloads/burst-buffer.
TOO_MUCH = re.compile(
    r"Requested node configuration is not available|More processors requested than permitted"
    r"|Node count specification invalid|Memory (required by task|specification can not)|Invalid feature specification"
    r"|generic resource|Invalid license specification|Requested (time|partition) .*(invalid|limit|not available)"
    r"|Invalid --[\w-]+ specification|Invalid numeric value|Invalid node name specified"
    r"|burst buffer: .* allowed: \d+ to \d+",
)

# What sbatch says to an array that is larger than the site allows.
ARRAY = re.compile(r"Invalid job array specification")

# Why a pending job waits for somebody to do something, in words: its trial goes on waiting, and people are told. By the
# reason up to its first comma, which particulars follow.
HELD: Mapping[str, str] = {
    "JobHeldUser": "it is held; its user lets it go with `scontrol release`",
    "JobHeldAdmin": "it is held by an administrator",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is not active",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    # the same, in the words of the next look of Slurm's main scheduler
    "Nodes required for job are DOWN": "nodes that it needs are down, drained or reserved",
    "ReservationDeleted": "its reservation is gone",
    "NodeDown": "a node that it needs is down",
}

Refusal = Literal["passing", "limit", "array", "too much", "other"]


def meaning_of(state: str) -> Meaning:
    """What a state means."""
    return STATES.get(state, UNKNOWN)


def refusal(message: str) -> Refusal:
    """Sorts what a program of Slurm says as it fails."""
    if PASSING.search(message):
        return "passing"
    if LIMIT.search(message):
        return "limit"
    if ARRAY.search(message):
        return "array"
    return "too much" if TOO_MUCH.search(message) else "other"
