"""The active records and the settings of one tenant in memory, with the indexes that find the nearest record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

from service.matching import ledger, settings
from service.matching.linkage.index import Index
from service.matching.linkage.job import Job
from service.matching.linkage.score import Part
from service.matching.models import Audience, Record, State
from service.matching.settings import Settings
from service.matching.submission import Submission
from service.studies.isolated import isolated
from service.tenancy import access
from service.tenancy.principal import Principal


@dataclass(frozen=True, slots=True)
class Match:
    """The record of one component that a job resembles most."""

    record: Record
    score: float
    threshold: float
    parts: Sequence[Part]

    @property
    def is_accepted(self) -> bool:
        """Return whether the score reaches the threshold."""
        return self.score >= self.threshold

    @property
    def reason(self) -> str:
        """Return why the record is or is not a match, as a sentence."""
        relation = "reaches" if self.is_accepted else "is below"
        return f"The score {self.score:.3f} {relation} the threshold {self.threshold:g}."


# A component, and the user whose jobs alone may match; "" for records that everybody's jobs may match.
_Key = tuple[str, str]


class _Shelf:
    """The records of one component for the same jobs by their ids, and the index of their jobs."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.index = Index()


class Book:
    """The records of one tenant by component. All methods may be called by several threads at once.

    Nothing in it comes from another tenant, so that neither a score nor the frequency of a word depends on others.
    """

    def __init__(self) -> None:
        self._ledger, self._revision = -1, -1
        self._refreshing = Lock()
        self._shelves: dict[_Key, _Shelf] = {}
        self._settings: dict[str, Settings] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def is_loaded(self) -> bool:
        """Return whether the records have been read once."""
        return self._revision >= 0

    def refresh(self, principal: Principal) -> None:
        """Read what has changed since the last call; one short query if nothing has."""
        with self._refreshing:
            key, revision = ledger.read(principal)
            if (key, revision) == (self._ledger, self._revision):
                return
            # A database that was restored or emptied goes on from an earlier revision.
            whole = key != self._ledger or revision < self._revision
            changed = access.rows(Record, principal)
            changed = changed.filter(state=State.ACTIVE) if whole else changed.filter(revision__gt=self._revision)
            # Rows that were committed after the revision was read are read again next time.
            found, stored = list(changed.order_by("revision", "pk")), settings.every(principal)
            shelves = {} if whole else dict(self._shelves)
            for place, records in _by_key(found).items():
                shelf = shelves.setdefault(place, _Shelf())
                _put(shelf, records, place)
                if not shelf.records:
                    del shelves[place]
            self._shelves, self._settings = shelves, stored
            self._size = sum(len(shelf.records) for shelf in shelves.values())
            self._ledger, self._revision = key, revision

    def match(self, submission: Submission, components: Sequence[str] = (), *, explain: bool = False) -> list[Match]:
        """Return the nearest record for each component (none: all), highest score first.

        A record that is for jobs of its own user alone is there for these. Without `explain`, records whose scores are
        below the threshold are left out.
        """
        rules, shelves = settings.of_cluster(self._settings, submission.cluster), self._shelves
        found = []
        for component in dict.fromkeys(components or (component for component, _ in shelves)):
            near = [
                match
                for key in dict.fromkeys(((component, ""), (component, submission.job.user)))
                if key in shelves and (match := _nearest(shelves[key], submission, rules, explain=explain)) is not None
            ]
            if near:
                found.append(max(near, key=lambda match: (match.score, _order(match.record))))
        return sorted(found, key=lambda match: (-match.score, match.record.component))


def _nearest(shelf: _Shelf, submission: Submission, rules: Settings, *, explain: bool) -> Match | None:
    found = shelf.index.nearest(
        submission.job,
        submission.cluster_nodes or submission.job.nodes,
        0.0 if explain else rules.threshold,
        weights=rules.weights,
        night=rules.night,
    )
    # The record may have been withdrawn since.
    record = None if found is None else shelf.records.get(found.record)
    return None if found is None or record is None else Match(record, found.score, rules.threshold, found.parts)


def _by_key(records: Iterable[Record]) -> dict[_Key, list[Record]]:
    """Return the records by each shelf that has or had them: an approval moves a record from one to the other."""
    found: dict[_Key, list[Record]] = {}
    for record in records:
        for user in dict.fromkeys(("", record.user)):
            found.setdefault((record.component, user), []).append(record)
    return found


def _key(record: Record) -> _Key:
    return record.component, "" if record.audience == Audience.EVERYBODY else record.user


def _put(shelf: _Shelf, changed: Sequence[Record], key: _Key) -> None:
    """Take over changed records: those that belong to the shelf with this key and are active."""
    active = [record for record in changed if record.is_active and _key(record) == key]
    kept = {record.pk for record in active}
    # A record is known before the index can find it.
    shelf.records.update({str(record.pk): record for record in active})
    try:
        shelf.index.load(map(_item, active))
    except Exception:  # noqa: BLE001 - one record must not hide the others
        for record in active:
            isolated(partial(_load, shelf, record), record.tenant_id)
    for record in changed:
        if record.pk not in kept:
            shelf.index.remove(str(record.pk))
            shelf.records.pop(str(record.pk), None)


def _load(shelf: _Shelf, record: Record) -> None:
    shelf.index.load([_item(record)])


def _item(record: Record) -> tuple[str, Job, int]:
    return str(record.pk), job_of(record), _order(record)


def job_of(record: Record) -> Job:
    """Return the job of a record."""
    return Job(
        user=record.user,
        name=record.name,
        program=record.program,
        command_line=record.command_line,
        submitted_at=record.submitted_at,
        nodes=record.nodes,
    )


def _order(record: Record) -> int:
    """Return the place of a record among equal scores: the one that became active last wins."""
    return int(record.active_since.timestamp() * 1e6)
