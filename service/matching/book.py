"""The active records and the settings of one tenant in memory, with the indexes that find the nearest record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from service.matching import ledger, settings
from service.matching.linkage.index import Index
from service.matching.linkage.job import Job
from service.matching.linkage.score import Part, Weights
from service.matching.models import Record, State
from service.matching.settings import Settings
from service.matching.submission import Submission
from service.tenancy import access
from service.tenancy.principal import Principal

# The component, and what the index is made for.
_Key = tuple[str, Weights, tuple[int, int]]


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


class Book:
    """The records of one tenant by component. All methods may be called by several threads at once.

    An index is made when a job is first matched with its component and its settings. Nothing in it comes from another
    tenant, so that neither a score nor the frequency of a word depends on other tenants.
    """

    def __init__(self) -> None:
        self._ledger, self._revision = -1, -1
        self._lock = Lock()
        self._refreshing = Lock()
        self._records: dict[str, dict[str, Record]] = {}
        self._settings: dict[str, Settings] = {}
        self._indexes: dict[_Key, Index] = {}
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
            with self._lock:
                if whole:
                    self._records, self._indexes = {}, {}
                for record in found:
                    self._put(record)
                if stored != self._settings:
                    self._settings, self._indexes = stored, {}
                self._size = sum(len(records) for records in self._records.values())
                self._ledger, self._revision = key, revision

    def match(self, submission: Submission, components: Sequence[str] = (), *, explain: bool = False) -> list[Match]:
        """Return the nearest record for each component (none: all), highest score first.

        Without `explain`, records whose scores are below the threshold are left out.
        """
        job, rules = submission.job, settings.of_cluster(self._settings, submission.cluster)
        nodes = submission.cluster_nodes or job.nodes
        found = []
        for component in dict.fromkeys(components or list(self._records)):
            match = self._nearest(component, job, nodes, rules, explain=explain)
            if match is not None:
                found.append(match)
        return sorted(found, key=lambda match: (-match.score, match.record.component))

    def _nearest(self, component: str, job: Job, nodes: int, rules: Settings, *, explain: bool) -> Match | None:
        index = self._index(component, rules)
        found = None if index is None else index.nearest(job, nodes, 0.0 if explain else rules.threshold)
        # The record may have been withdrawn since.
        record = None if found is None else self._records.get(component, {}).get(found.record)
        if found is None or record is None:
            return None
        return Match(record, found.score, rules.threshold, found.parts)

    def _index(self, component: str, rules: Settings) -> Index | None:
        key = (component, rules.weights, rules.night)
        known = self._indexes.get(key)
        if known is not None:
            return known
        with self._lock:
            records = self._records.get(component)
            if not records:
                return None
            if key in self._indexes:
                # Another thread has just made it.
                return self._indexes[key]
            index = Index(rules.weights, rules.night)
            index.load((str(record.pk), job_of(record), _order(record)) for record in records.values())
            self._indexes[key] = index
            return index

    def _put(self, record: Record) -> None:
        """Take over one changed record; the caller holds the lock."""
        name, records = str(record.pk), self._records.setdefault(record.component, {})
        indexes = {key: index for key, index in self._indexes.items() if key[0] == record.component}
        if record.is_active:
            records[name] = record
            for index in indexes.values():
                index.put(name, job_of(record), _order(record))
            return
        records.pop(name, None)
        for key, index in indexes.items():
            index.remove(name)
            if not records:
                del self._indexes[key]
        if not records:
            del self._records[record.component]


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
