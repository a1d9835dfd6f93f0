"""The states of jobs that Ray reports."""

import subprocess
import sys

import pytest

from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.ray_states import FAILURES, NEVER_STARTED, STATES, meaning_of


def test_every_state_has_a_meaning(programs_start: None) -> None:
    code = "from ray.job_submission import *; print(*JobStatus); print(*JobErrorType, sep=' ')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    states, errors = done.stdout.splitlines()
    assert set(states.split()) == set(STATES)
    assert {error.removeprefix("JobErrorType.") for error in errors.split()} == set(FAILURES)
    assert set(FAILURES) >= NEVER_STARTED


@pytest.mark.parametrize(
    ("state", "error", "message", "code", "outcome", "reason"),
    [
        ("PENDING", "", "", None, None, ""),
        ("RUNNING", "", "", None, None, ""),
        ("OF A LATER RAY", "", "", None, None, ""),
        ("STOPPED", "", "", None, Ended.FAILED, "the job was stopped in Ray, not by the service"),
        ("SUCCEEDED", "", "", 0, Ended.FAILED, "check that the job's folder is shared"),
        ("FAILED", "", "", None, Ended.FAILED, "the job failed in Ray"),
        ("FAILED", "OF A LATER RAY", "why\nmore", None, Ended.FAILED, "the job failed in Ray: why"),
        ("FAILED", "JOB_SUPERVISOR_ACTOR_DIED", "The node has died", None, Ended.FAILED, "died, perhaps with its node"),
        ("FAILED", "JOB_SUPERVISOR_ACTOR_DIED", "node is running low on memory", None, Ended.FAILED, "out of memory"),
        ("FAILED", "JOB_ENTRYPOINT_COMMAND_ERROR", "log", -9, Ended.FAILED, "supervisor process was killed"),
        ("FAILED", "JOB_ENTRYPOINT_COMMAND_ERROR", "log", 2, Ended.FAILED, "without a result, with exit code 2"),
        ("FAILED", "RUNTIME_ENV_SETUP_FAILURE", "pip", None, Ended.FAILED, "its runtime environment on the node: pip"),
    ],
)
def test_each_state_is_blamed_on_the_machine_or_the_configuration(
    state: str, error: str, message: str, code: int | None, outcome: Ended | None, reason: str
) -> None:
    meaning = meaning_of(state, error, message, code)
    assert meaning.outcome is outcome
    assert reason in meaning.reason
