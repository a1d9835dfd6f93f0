"""What Ray says of a job, and what that means for its trial."""

from collections.abc import Mapping

from trimtab_agent.runners.base import JobState
from trimtab_agent.runners.batch import Meaning

_failed = Meaning.failed

# Every state of Ray's jobs. A result that the supervisor has left goes before all of these.
STATES: Mapping[str, Meaning] = {
    # waits for resources, or for its process to be started; after 15 minutes Ray gives it up, see NEVER_STARTED
    "PENDING": Meaning(JobState.QUEUED),
    "RUNNING": Meaning(JobState.RUNNING),
    # somebody else than the agent has called stop
    "STOPPED": _failed("the job was stopped in Ray, not by the service"),
    # the supervisor ended with 0, so that a result must be there: the shared folder has lost it
    "SUCCEEDED": _failed("the job has succeeded, but its result did not appear in the job's folder: is that shared?"),
    # see FAILURES
    "FAILED": _failed("the job failed in Ray"),
}
# a state of a later Ray: it is no reason to give a trial up
UNKNOWN = Meaning(JobState.RUNNING)

# Why a job is FAILED, by Ray's kind of error. None of them is the configuration's fault: what that does wrong, the
# supervisor tells itself.
FAILURES: Mapping[str, Meaning] = {
    # the node is dead, or has killed the job's process: lost with its machine, preempted, or out of memory
    "JOB_SUPERVISOR_ACTOR_DIED": _failed("the job's process in Ray died, perhaps with its node"),
    "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE": _failed("the job's process in Ray was lost"),
    # waited longer for resources than Ray lets a job wait: see NEVER_STARTED
    "JOB_SUPERVISOR_ACTOR_START_TIMEOUT": _failed("Ray did not start the job in time"),
    # asks for a node that is not there any more, by its label
    "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE": _failed("Ray has no node for the job"),
    "JOB_SUPERVISOR_ACTOR_START_FAILURE": _failed("Ray could not start the job's process"),
    # the cluster's own environment for jobs: the agent asks for none
    "RUNTIME_ENV_SETUP_FAILURE": _failed("Ray could not set up its runtime environment on the node"),
    "JOB_ENTRYPOINT_COMMAND_START_ERROR": _failed("Ray could not start the trial's supervisor"),
    # the supervisor was killed or could not be started there
    "JOB_ENTRYPOINT_COMMAND_ERROR": _failed("the trial's supervisor process ended without a result"),
}

# The jobs of these have never run. Where the cluster could run them they are submitted again; else, where parameters
# ask for what cannot be had, the configuration is infeasible.
NEVER_STARTED = {"JOB_SUPERVISOR_ACTOR_START_TIMEOUT", "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"}

# What the node's memory monitor leaves in the message of a job whose process it has killed. Whoever took the memory, it
# need not have been this trial.
OUT_OF_MEMORY = "running low on memory"


def meaning_of(state: str, error: str, message: str, exit_code: int | None) -> Meaning:
    """What a job's state, its kind of error, its message and its exit code mean together."""
    meaning = STATES.get(state, UNKNOWN)
    if state != "FAILED":
        return meaning
    if exit_code is not None and exit_code < 0:
        return _failed("the trial's supervisor process was killed")
    if OUT_OF_MEMORY in message:
        return _failed("the job was killed since its node ran out of memory")
    meaning = FAILURES.get(error, meaning)
    told = message.strip().splitlines()
    if not told or error in NEVER_STARTED:
        return meaning
    if error == "JOB_ENTRYPOINT_COMMAND_ERROR":
        # the message holds the shell's log, which is empty: the supervisor's own is in the folder
        return _failed(f"{meaning.reason}, with exit code {exit_code}")
    return _failed(f"{meaning.reason}: {told[0][:500]}")
