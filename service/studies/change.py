"""A change of a study: one object, one transaction, one revision.

    with changing(principal, name, "trial.complete", trial=3) as work:
        trial = actions.get_trial(work, 3)
        actions.step_trial(work, trial, TrialState.COMPLETED, metrics=metrics)

The block holds the study's row lock, which orders all changes of the study and of its trials (lock order: study, then
trial, then lease or operation). When it ends, one statement writes the study's row, the audit entry and the
notification. A block that changed nothing writes nothing, and one that raises is undone. The steps are in `actions.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import RLock
from typing import Any
from uuid import UUID

from psycopg.types.json import Json

from service.core.errors import NotFound
from service.core.lifecycle import StudyState
from service.studies.listen_notify import CHANNEL
from service.studies.models import Study, Trial
from service.studies.specs import StudySpec, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tenancy.statements import Select

# The spec may be large and is remembered by spec_of. NO KEY: rows that refer to the study may be inserted meanwhile.
_LARGE = ["spec", "first_space"]
_CLOCK = {"database_time": "statement_timestamp()"}
_lock_name = Select(Study, "name = %s", ending="FOR NO KEY UPDATE", without=_LARGE, extra=_CLOCK)
_lock_id = Select(Study, "id = %s", ending="FOR NO KEY UPDATE", without=_LARGE, extra=_CLOCK)
_read_id = Select(Study, "id = %s", without=_LARGE, extra=_CLOCK)
_OF_NAME = "study_id = (SELECT id FROM studies_study WHERE tenant_id = %s AND name = %s)"
_read_trial = Select(Trial, f"{_OF_NAME} AND number = %s")
_read_client = Select(Trial, f"{_OF_NAME} AND client_id = %s AND state = 'ACTIVE'", ending="ORDER BY number")
_LARGEST_NUMBER = 2**31 - 1

# The columns that a change writes. All others are written by the action that changes them.
_COLUMNS = (
    "state",
    "state_reason",
    "state_reason_data",
    "revision",
    "next_number",
    "cursor",
    "requested_count",
    "active_count",
    "finished_count",
    "added_count",
    "default_done",
    "exhausted",
    "deadline",
    "last_granted_at",
    "closing",
    "final_check",
    "verdict",
)
_JSON = ("state_reason_data", "closing", "final_check", "verdict")
# Names of columns alone; values are parameters.
_CONCLUDE = f"""
WITH stamped AS (
    UPDATE studies_study SET {", ".join(f"{column} = %s" for column in _COLUMNS)}, updated_at = %s
    WHERE id = %s AND tenant_id = %s
), noted AS (
    INSERT INTO tenancy_auditentry (tenant_id, actor, credential, address, action, target, detail, before, after)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s::json, %s::json)
)
SELECT pg_notify(%s, %s)
"""  # nosec B608
# Threads of one process take turns with a study here, so that they do not wait for each other in PostgreSQL.
_turns = [RLock() for _ in range(64)]


class Deleted(NotFound):
    """A study, or a row that belongs to it, was deleted after the caller had found it."""


class HalfDone(RuntimeError):
    """A change that its code has left inconsistent. It is undone. This is a defect of the service."""


@dataclass(slots=True)
class Snapshot:
    """A study as the database had it at `time`, by the database's clock."""

    principal: Principal
    study: Study
    time: datetime
    # The tuner that trials/tuners.py has lent, until what it was fed is committed.
    tuner: object | None = None
    # The trials that were read together with the lock.
    trials: list[Trial] = field(default_factory=list)

    @property
    def spec(self) -> StudySpec:
        return spec_of(self.study)


@dataclass(slots=True)
class Work(Snapshot):
    """One change of a study whose row is locked.

    `action`, `target` (below the study) and `detail` are for the audit trail, and may be set in the block.
    """

    action: str = ""
    target: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)
    # Notifications in addition to the study's change: an operation has ended, an agent has a free slot that another
    # study may use, or agents are to stop trials.
    ended_operation: UUID | None = None
    slot_freed: bool = False
    stops_trials: bool = False
    _noted: dict[str, tuple[Mapping[str, object] | None, Mapping[str, object] | None]] = field(default_factory=dict)
    _before: tuple[object, ...] = ()
    _miscounted: int = 0
    _revised: bool = False
    _over: bool = False

    def __post_init__(self) -> None:
        self._before, self._miscounted = _columns(self.study), _miscounted(self.study)

    def revise(self) -> int:
        """Return the revision of this change: one more than the study's last, however many rows the change touches.

        A block that changes only rows of other tables calls it to be concluded.
        """
        if self._over:
            raise HalfDone(
                f"The change {self.action} of study {self.study.name!r} is concluded: it takes no more steps."
            )
        if not self._revised:
            self._revised = True
            self.study.revision += 1
        return self.study.revision

    def note(self, what: str, before: Mapping[str, object] | None, after: Mapping[str, object] | None) -> None:
        """Keep for the audit trail how `what` (study, trial/3) was before this change, and how it is now."""
        first = self._noted[what][0] if what in self._noted else before
        self._noted[what] = (first, after)

    def conclude(self) -> None:
        """Write what changed, if anything did. `changing` calls it at the end of its block."""
        changed = self._revised or _columns(self.study) != self._before
        if _miscounted(self.study) != self._miscounted:
            raise HalfDone(
                f"The change {self.action} of study {self.study.name!r} has left its counters inconsistent:"
                f" {self.study.requested_count} REQUESTED, {self.study.active_count} ACTIVE and"
                f" {self.study.finished_count} finished of {self.study.trial_count} trials."
            )
        if changed:
            self.revise()
            self._write()
        self._over = True

    def _write(self) -> None:
        study, principal = self.study, self.principal
        study.updated_at = self.time
        values = [Json(value) if name in _JSON and value is not None else value for name, value in _named(study)]
        payload = {
            "study": study.pk,
            "operation": None if self.ended_operation is None else str(self.ended_operation),
            "work": self.slot_freed or (study.state == StudyState.ACTIVE and study.requested_count > 0),
            "stop": principal.tenant_id if self.stops_trials and study.component else None,
            "tenant": principal.tenant_id,
            "kinds": ["studies", "agents"] if study.component else ["studies"],
        }
        access.execute(
            principal,
            _CONCLUDE,
            (
                *values,
                study.updated_at,
                study.pk,
                principal.tenant_id,
                principal.tenant_id,
                principal.actor,
                principal.credential,
                principal.address,
                self.action,
                f"study/{study.name}" + (f"/{self.target}" if self.target else ""),
                Json(dict(self.detail)),
                self._side(0),
                self._side(1),
                CHANNEL,
                json.dumps(payload),
            ),
        )

    def _side(self, side: int) -> Json | None:
        known = {what: pair[side] for what, pair in self._noted.items() if pair[side] is not None}
        return Json(known) if known else None


@contextmanager
def changing(
    principal: Principal,
    study: str | int,
    action: str,
    target: str = "",
    detail: Mapping[str, object] | None = None,
    *,
    trial: int | None = None,
    client: str = "",
) -> Iterator[Work]:
    """Change the study of this name or primary key in one transaction, which is concluded at the end of the block.

    For a study's name, `work.trials` has the trial with the number `trial`, which is also the target in the audit
    trail, or the ACTIVE trials of `client`. The lock and these trials are one round trip to the database, where a
    separate read would be a second one (docs/decisions/0002 has the measurement).

    Raises NotFound for a name, Deleted for a primary key, and HalfDone where the block left the change inconsistent.
    """
    if trial is not None:
        target = f"trial/{trial}"
    with _turns[hash((principal.tenant_id, study)) % len(_turns)], access.work(principal, action):
        found = lock(principal, study, trial=trial, client=client)
        work = Work(
            principal, found.study, found.time, trials=found.trials, action=action, target=target, detail=detail or {}
        )
        yield work
        work.conclude()


def lock(principal: Principal, study: str | int, *, trial: int | None = None, client: str = "") -> Snapshot:
    """Return the study of this name or primary key, its row locked until the transaction ends.

    `trial` and `client` are as in `changing`. Raises NotFound for a name, and Deleted for a primary key.
    """
    if isinstance(study, int):
        return _expect(principal, _lock_id(principal, study))
    trials: list[Trial] = []
    of_study = (principal.tenant_id, study)
    # A number beyond the column's range would be an error of the database.
    if trial is not None and 0 < trial <= _LARGEST_NUMBER:
        found, trials = _lock_name.followed_by(principal, (study,), _read_trial, (*of_study, trial))
    elif client:
        found, trials = _lock_name.followed_by(principal, (study,), _read_client, (*of_study, client))
    else:
        found = _lock_name(principal, study)
    if not found:
        raise NotFound("study_not_found", f"There is no study {study!r}.")
    expect_meant(principal, found[0])
    return _expect(principal, found, trials)


def expect_meant(principal: Principal, study: Study) -> None:
    """Raise NotFound if a call means a deleted study, whose name this one has (`study_replaced`)."""
    if principal.study_uid and principal.study_uid != str(study.uid):
        raise NotFound(
            "study_replaced",
            f"The study that the call is about was deleted; another study has the name {study.name!r} by now. Nothing"
            " was changed.",
        )


def read(principal: Principal, study_id: int) -> Snapshot:
    """Return the study of this primary key as it is now, not locked. Raises Deleted."""
    return _expect(principal, _read_id(principal, study_id))


def _expect(principal: Principal, found: list[Study], trials: Sequence[Trial] = ()) -> Snapshot:
    if not found:
        raise Deleted("study_not_found", "The study was deleted.")
    return Snapshot(principal, found[0], found[0].__dict__.pop("database_time"), trials=list(trials))


def _named(study: Study) -> list[tuple[str, Any]]:
    return [(column, getattr(study, column)) for column in _COLUMNS]


def _columns(study: Study) -> tuple[object, ...]:
    return tuple(getattr(study, column) for column in _COLUMNS)


def _miscounted(study: Study) -> int:
    """Return how many trials more than there are the study's counters count."""
    return study.open_count + study.finished_count - study.trial_count
