"""The parts of Vizier's studies and trials for which the service has no place, in a file of this machine."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from trimtab._gen import vizier_pb2 as vz


@dataclass
class Kept:
    """The kept parts of a trial.

    `extra` has the metadata, and the first measurements and the final one as the client sent them.
    """

    deleted: bool = False
    stopping: bool = False
    completed: bool = False
    """The client has completed a trial that the service had pruned."""
    extra: vz.Trial = field(default_factory=vz.Trial)


class Store:
    """An SQLite file, in which a study has its uid. Thread-safe; several endpoints may share it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._guard = threading.RLock()
        self._adopted: set[str] = set()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
        path.chmod(0o600)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS trials (study TEXT, number INTEGER, deleted INTEGER, stopping INTEGER,"
            " completed INTEGER, extra BLOB, PRIMARY KEY (study, number))"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS studies (study TEXT PRIMARY KEY, metadata BLOB)")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def trials(self, study: str) -> dict[int, Kept]:
        """Return what is kept of the study's trials, by number."""
        with self._guard:
            rows = self._db.execute("SELECT * FROM trials WHERE study = ?", (study,)).fetchall()
        return {row[1]: _kept(row) for row in rows}

    def trial(self, study: str, number: int) -> Kept:
        """Return what is kept of a trial."""
        with self._guard:
            row = self._db.execute("SELECT * FROM trials WHERE study = ? AND number = ?", (study, number)).fetchone()
        return Kept() if row is None else _kept(row)

    @contextmanager
    def changing(self, study: str, number: int) -> Iterator[Kept]:
        """Yield what is kept of a trial, and write it with its changes."""
        with self._guard:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                kept = self.trial(study, number)
                yield kept
                values = (kept.deleted, kept.stopping, kept.completed, kept.extra.SerializeToString())
                self._db.execute("REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?)", (study, number, *values))
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def metadata(self, study: str) -> list[vz.KeyValue]:
        """Return the metadata that clients have added to a study."""
        with self._guard:
            row = self._db.execute("SELECT metadata FROM studies WHERE study = ?", (study,)).fetchone()
        return [] if row is None else list(vz.StudySpec.FromString(row[0]).metadata)

    def set_metadata(self, study: str, metadata: list[vz.KeyValue]) -> None:
        """Replace the metadata of a study."""
        data = vz.StudySpec(metadata=metadata).SerializeToString()
        with self._guard:
            self._db.execute("REPLACE INTO studies VALUES (?, ?)", (study, data))

    def adopt(self, name: str, uid: str) -> None:
        """Give a study what an earlier version of the endpoint has kept under its name."""
        with self._guard:
            if uid == name or uid in self._adopted:
                return
            self._adopted.add(uid)
            self._db.execute("UPDATE OR IGNORE trials SET study = ? WHERE study = ?", (uid, name))
            self._db.execute("UPDATE OR IGNORE studies SET study = ? WHERE study = ?", (uid, name))

    def forget(self, study: str) -> None:
        """Delete everything that is kept of a study."""
        with self._guard:
            self._db.execute("DELETE FROM trials WHERE study = ?", (study,))
            self._db.execute("DELETE FROM studies WHERE study = ?", (study,))


def _kept(row: tuple[str, int, int, int, int, bytes]) -> Kept:
    return Kept(bool(row[2]), bool(row[3]), bool(row[4]), vz.Trial.FromString(row[5]))


def merge(known: list[vz.KeyValue], new: list[vz.KeyValue]) -> list[vz.KeyValue]:
    """Return metadata in which later values replace earlier ones of the same namespace and key."""
    merged = {(one.ns, one.key): one for one in [*known, *new]}
    return list(merged.values())
