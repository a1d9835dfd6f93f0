"""The studies that ship with Trimtab say which job they tune, so that later jobs of it match their records."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest
import yaml

from service.matching.linkage.index import Index
from service.matching.linkage.job import Job
from service.matching.settings import DEFAULT

WORKLOADS = Path(__file__).parents[4] / "agents/workloads"
SHIPPED = {
    str(path.relative_to(WORKLOADS)): study
    for path in sorted(WORKLOADS.rglob("*.yml"))
    if "job" in (study := yaml.safe_load(path.read_text()))
}
TUNED = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
# Half a day, half an hour and half a minute later, and on another day of the week: no time is as far from it.
LATER = datetime(2026, 5, 9, 19, 38, 39, tzinfo=UTC)


def score(record: Job, job: Job) -> float:
    index = Index()
    index.load(iter([("1", record, 1)]))
    found = index.nearest(job, 8, 0.0)
    assert found is not None
    return found.score


def submitted(study: dict[str, dict[str, str]], user: str) -> Job:
    """Return the job that a user submits without a name, so that it has that of its program."""
    command = study["job"]["command"]
    program = PurePosixPath(shlex.split(command)[0]).name
    return Job(user, program, program, command, LATER, 1)


def test_the_workloads_that_reach_jobs_have_one() -> None:
    assert {name.split("/")[0] for name in SHIPPED} == {"burst-buffer", "compression", "small-read-optimizer"}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_own_command_of_a_study_matches_its_record(name: str) -> None:
    study = SHIPPED[name]
    said = study["job"]
    record = Job("ada", said["name"], said["program"], said["command"], TUNED, 1)
    assert score(record, submitted(study, "ada")) >= DEFAULT.threshold
    # Without it, the record would have the command that measures: of the slow file server, or of the buffer.
    component = yaml.safe_load((WORKLOADS / name.split("/")[0] / "component.yaml").read_text())
    argv = [str(item) for item in component["applications"][study["application"]]["command"]]
    measured = Job("ada", study["application"], PurePosixPath(argv[0]).name, shlex.join(argv), TUNED, 1)
    assert score(measured, submitted(study, "ada")) < DEFAULT.threshold
