"""The submissions that resembled a record, on disk until the service has the report of their end.

STATE/matching/SUBMISSION.json
"""

import time
from dataclasses import replace
from pathlib import Path

from trimtab_agent.files import write_atomically
from trimtab_agent.logger import Logger
from trimtab_agent.submissions import End, Submission

logger = Logger(__name__)

# Maximum number of submissions; the oldest makes way.
MOST = 5000
# Jobs whose submission is known. A job is the end of one submission only.
MOST_CLAIMED = 10 * MOST
# Seconds after which a submission without an end is removed: its submission failed, or its job still waits.
LONGEST = 30 * 86400.0


class Spool:
    """The submissions in a folder, also in memory."""

    def __init__(self, folder: Path, most: int = MOST) -> None:
        """Read the folder; create it if it does not exist. Damaged files are removed."""
        self._folder = folder
        self._most = most
        self._known: dict[str, Submission] = {}
        self._claimed: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in sorted(folder.glob("*.json"), key=lambda one: one.stat().st_mtime):
            try:
                found = Submission.from_json(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                logger.warning("a damaged submission is removed", path=path, error=error)
                path.unlink(missing_ok=True)
                continue
            self._known[found.id] = found
            if found.tasks or found.confirmed:
                self.claim(found)

    def put(self, submission: Submission) -> None:
        """Store a new or changed submission. A full disk loses it and nothing else."""
        self._known[submission.id] = submission
        try:
            write_atomically(self._path(submission.id), submission.to_json().encode())
        except OSError as error:
            logger.warning("a submission is only in memory", submission=submission.id, error=error)
        while len(self._known) > self._most:
            oldest = next(iter(self._known))
            logger.warning("a submission is dropped, too many have no report", submission=oldest, most=self._most)
            self.remove(oldest)

    def get(self, submission: str, uid: int) -> Submission | None:
        """Return a user's own submission; None if there is none."""
        found = self._known.get(submission)
        return found if found is not None and found.uid == uid else None

    def submitted(self, submission: str, uid: int, job_id: str) -> None:
        """Record the scheduler's id of a job, as its user says it. Only the first one counts."""
        found = self.get(submission, uid)
        if found is not None and found.has_scheduler and not found.job_id:
            self.put(replace(found, job_id=job_id))

    def ended(self, submission: str, uid: int, end: End, *, confirmed: bool = False) -> None:
        """Record the end of a command that has no scheduler. Only the first one counts."""
        found = self.get(submission, uid)
        if found is not None and not found.has_scheduler and found.end is None:
            self.put(replace(found, end=end, confirmed=confirmed))

    def running(self) -> list[Submission]:
        """Return the submissions that the scheduler knows and whose end is not known."""
        return [one for one in self._known.values() if one.job_id and one.end is None]

    def finished(self, most: int) -> list[Submission]:
        """Return at most this many submissions whose end is known."""
        return [one for one in self._known.values() if one.end is not None][:most]

    def remove(self, submission: str) -> None:
        """Remove a submission."""
        self._known.pop(submission, None)
        self._path(submission).unlink(missing_ok=True)

    def sweep(self, now: float | None = None) -> None:
        """Remove submissions that have had no end for too long."""
        before = (time.time() if now is None else now) - LONGEST
        for one in list(self._known.values()):
            if one.end is None and one.job.submitted_at < before:
                self.remove(one.id)

    def claim(self, submission: Submission) -> bool:
        """Remember that the job of a submission, which is its user's, belongs to it; return whether to no other one."""
        owner = self._claimed.setdefault(submission.job_id, submission.id)
        while len(self._claimed) > MOST_CLAIMED:
            del self._claimed[next(iter(self._claimed))]
        return owner == submission.id

    def _path(self, submission: str) -> Path:
        return self._folder / f"{submission}.json"
