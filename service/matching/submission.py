"""Submitted jobs: what clients say of a job, checked."""

from __future__ import annotations

from dataclasses import dataclass

from service.core.errors import InvalidInput
from service.matching.linkage.job import Job
from service.studies.job_metadata import LONGEST_COMMAND, LONGEST_NAME, check_nodes, check_text


@dataclass(frozen=True, slots=True)
class Submission:
    """A job with the cluster and the partition to which it was submitted. `cluster_nodes` 0: unknown."""

    job: Job
    cluster: str = ""
    cluster_nodes: int = 0
    partition: str = ""


def check(field: str, submission: Submission) -> None:
    """Refuse a job whose fields are out of bounds. Raises InvalidInput with paths that begin with `field`."""
    job = submission.job
    for name in ("user", "name", "program"):
        check_text(f"{field}.{name}", getattr(job, name), LONGEST_NAME)
    check_text(f"{field}.command_line", job.command_line, LONGEST_COMMAND)
    check_text(f"{field}.cluster", submission.cluster, LONGEST_NAME)
    check_text(f"{field}.partition", submission.partition, LONGEST_NAME)
    check_nodes(f"{field}.nodes", job.nodes)
    check_nodes(f"{field}.cluster_nodes", submission.cluster_nodes, least=0)
    if job.submitted_at.tzinfo is None:
        raise InvalidInput(f"{field}.submitted_at", str(job.submitted_at), "a time with its zone")
