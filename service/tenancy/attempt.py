"""Writes that are kept back, to be sent together as one statement.

A transaction of an ask or a tell takes a dozen round trips between this process and PostgreSQL, most of them only to
wait. An attempt takes one for what it reads and one for all that it writes: see studies/change.py. What can only be
done inside of a transaction raises NeedsTransaction; nothing has been written by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import Any


class NeedsTransaction(BaseException):
    """The attempt came to something that it cannot do.

    No Exception, so that nobody takes it for a fault of what he called (an algorithm's, say) and goes on.
    """


@dataclass
class Attempt:
    """`writes`: statements and their parameters, each guarded by a row of the table `stamped`."""

    writes: list[tuple[str, Sequence[Any]]] = field(default_factory=list)
    done: bool = False

    def add(self, sql: str, parameters: Sequence[Any]) -> None:
        """Keep a write back."""
        assert not self.done, "the study was concluded already"
        self.writes.append((sql, parameters))


class _Current(local):
    attempt: Attempt | None = None


_current = _Current()


def current() -> Attempt | None:
    """The attempt that this thread makes, if it makes one."""
    return _current.attempt


@contextmanager
def begun() -> Iterator[Attempt]:
    """Keep back this thread's writes."""
    assert _current.attempt is None
    _current.attempt = Attempt()
    try:
        yield _current.attempt
    finally:
        _current.attempt = None


def forbid() -> None:
    """Say that what follows needs a transaction."""
    if _current.attempt is not None:
        raise NeedsTransaction
