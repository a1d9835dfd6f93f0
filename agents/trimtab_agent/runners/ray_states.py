"""Ray's job states and their meaning for trials."""

from collections.abc import Mapping

from trimtab_agent.runners.base import JobState
from trimtab_agent.runners.batch import Meaning

_failed = Meaning.failed

# Every state of Ray's jobs. A result from the supervisor takes precedence over all of these.
STATES: Mapping[str, Meaning] = {
    # waits for resources or the start of its process; Ray gives it up after 15 minutes, see NEVER_STARTED
    "PENDING": Meaning(JobState.QUEUED),
    "RUNNING": Meaning(JobState.RUNNING),
    # somebody other than the agent has stopped it
    "STOPPED": _failed("the job was stopped in Ray, not by the service"),
    # the supervisor ended with 0, so there must be a result that is not visible here
    "SUCCEEDED": _failed("the job has succeeded without a visible result: check that the job's folder is shared"),
    # see FAILURES
    "FAILED": _failed("the job failed in Ray"),
}
# A state of a later Ray version is no reason to give up a trial.
UNKNOWN = Meaning(JobState.RUNNING)

# Why a job is FAILED, by Ray's kind of error. None of them is the configuration's fault, because the supervisor itself
# reports the configuration's errors.
FAILURES: Mapping[str, Meaning] = {
    # the node is dead, or has killed the job's process: lost with its machine, preempted, or out of memory
    "JOB_SUPERVISOR_ACTOR_DIED": _failed("the job's process in Ray died, perhaps with its node"),
    "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE": _failed("the job's process in Ray was lost"),
    # waited for resources longer than Ray allows: see NEVER_STARTED
    "JOB_SUPERVISOR_ACTOR_START_TIMEOUT": _failed("Ray did not start the job in time"),
    # requests, by its label, a node that no longer exists
    "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE": _failed("Ray has no node for the job"),
    "JOB_SUPERVISOR_ACTOR_START_FAILURE": _failed("Ray could not start the job's process"),
    # the cluster's own environment for jobs; the agent requests none
    "RUNTIME_ENV_SETUP_FAILURE": _failed("Ray could not set up its runtime environment on the node"),
    "JOB_ENTRYPOINT_COMMAND_START_ERROR": _failed("Ray could not start the trial's supervisor"),
    # the supervisor was killed or could not be started there
    "JOB_ENTRYPOINT_COMMAND_ERROR": _failed("the trial's supervisor process ended without a result"),
}

# Jobs with these errors have never run. If the cluster could run them, they are submitted again. Otherwise the
# configuration is infeasible if parameters are among the requested resources.
NEVER_STARTED = {"JOB_SUPERVISOR_ACTOR_START_TIMEOUT", "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"}

# The node's memory monitor leaves this in the message of a job whose process it has killed. The trial need not have
# used the memory.
OUT_OF_MEMORY = "running low on memory"


def meaning_of(state: str, error: str, message: str, exit_code: int | None) -> Meaning:
    """Return the meaning of a job's state, kind of error, message and exit code."""
    meaning = STATES.get(state, UNKNOWN)
    if state != "FAILED":
        return meaning
    if exit_code is not None and exit_code < 0:
        return _failed("the trial's supervisor process was killed")
    if OUT_OF_MEMORY in message:
        return _failed("the job was killed because its node ran out of memory")
    meaning = FAILURES.get(error, meaning)
    reported = message.strip().splitlines()
    if not reported or error in NEVER_STARTED:
        return meaning
    if error == "JOB_ENTRYPOINT_COMMAND_ERROR":
        # The message holds the shell's empty log. The supervisor's log is in the folder.
        return _failed(f"{meaning.reason}, with exit code {exit_code}")
    return _failed(f"{meaning.reason}: {reported[0][:500]}")
