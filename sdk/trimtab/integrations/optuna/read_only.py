"""An Optuna storage that is only read.

Optuna creates missing tables and notes versions in every database that it opens. So an SQLite file is copied, and
Optuna opens the copy. A session with another database is read-only, which the database itself enforces.
"""

import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from optuna.storages import BaseStorage, RDBStorage

from trimtab.errors import InvalidInput
from trimtab.terminal import without_passwords

ALLOWED = "a readable Optuna storage, such as sqlite:///study.db or postgresql+psycopg://USER@HOST/DATABASE"
# Statements that make every later transaction of a session read-only, by SQLAlchemy's name of the database.
_READ_ONLY = {
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
}


@contextmanager
def opened(url: str) -> Iterator[BaseStorage]:
    """Open the storage at an address of SQLAlchemy.

    Raises:
        InvalidInput: it cannot be read, or it is of a database that cannot be kept from writing.
    """
    with tempfile.TemporaryDirectory(prefix="trimtab-optuna-") as folder:
        try:
            storage = _opened(url, Path(folder))
        except InvalidInput:
            raise
        except Exception as error:  # noqa: BLE001 - of SQLAlchemy, of a database driver, or of Optuna
            raise _refused(url, error) from None  # the traceback of a driver may contain the password of the address
        try:
            yield storage
        finally:
            storage.remove_session()


def _opened(url: str, folder: Path) -> BaseStorage:
    from sqlalchemy.engine import make_url

    address = make_url(url)
    database = address.get_backend_name()
    if database == "sqlite":
        copy = folder / "storage.db"
        _copy(Path(address.database or ""), copy)
        return _of_this_version(f"sqlite:///{copy}", {}, upgrade=True)
    if database not in _READ_ONLY:
        allowed = f"{ALLOWED}; only with SQLite, PostgreSQL and MySQL is it certain that nothing is written"
        raise InvalidInput.of("storage", without_passwords(url), allowed) from None
    return _of_this_version(url, {"pool_events": [(_reader(_READ_ONLY[database]), "connect")]}, upgrade=False)


def _reader(statement: str) -> Any:
    def make_read_only(connection: Any, _: object) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute(statement)
        connection.commit()

    return make_read_only


def _of_this_version(url: str, engine: dict[str, Any], *, upgrade: bool) -> BaseStorage:
    """Return the storage, whose tables are those of this Optuna. A copy of earlier tables is upgraded."""
    storage = RDBStorage(url, engine_kwargs=engine, skip_compatibility_check=True, skip_table_creation=not upgrade)
    if storage.get_current_version() != storage.get_head_version():
        if not upgrade:
            raise RuntimeError(
                "its tables are those of another version of Optuna: upgrade it, or a copy of it, with `optuna storage"
                " upgrade`"
            )
        storage.upgrade()
    return storage


def _copy(source: Path, target: Path) -> None:
    """Copy a database of SQLite as of one moment, while other programs may write to it."""
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    if source.stat().st_size == 0:
        raise ValueError(f"the file {source} is empty")
    address = f"file:{quote(str(source.resolve()))}?mode=ro"
    if _is_at_rest(source):
        address += "&immutable=1"
    with (
        closing(sqlite3.connect(address, uri=True)) as read,
        closing(sqlite3.connect(target)) as written,
    ):
        tables = {name for (name,) in read.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"studies", "trials"} <= tables:
            raise ValueError(f"the file {source} has no tables of Optuna")
        read.backup(written)


def _is_at_rest(source: Path) -> bool:
    """Return whether a database with a write-ahead log has none, so that no program uses it.

    A reader would otherwise create the log, which only a writer can remove.
    """
    with source.open("rb") as file:
        versions = file.read(20)[18:]
    return versions == b"\x02\x02" and not source.with_name(f"{source.name}-wal").exists()


def _refused(url: str, error: Exception) -> InvalidInput:
    lines = str(error).strip().splitlines()
    reason = _without_parts(without_passwords(lines[0]), url) if lines else type(error).__name__
    return InvalidInput.of("storage", url, f"{ALLOWED} ({reason})")


def _without_parts(reason: str, url: str) -> str:
    """Return the reason of a driver, or nothing of it if it quotes a part of the password.

    With a special character in the password, a driver takes what follows for the host or the port.
    """
    found = re.search(r"://[^\s:/@]*:(\S*)@", url)
    parts = re.split(r"\W", unquote(found[1])) if found else []
    return "the address is not understood" if any(part and part in reason for part in parts) else reason
