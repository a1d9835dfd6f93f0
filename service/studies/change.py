"""One change of a study, made as cheaply as it can be.

The first try takes no lock: the action works on the study as this process left it, reads what else it needs, and all
that it writes goes to the database as one statement, which does nothing unless the study still has that revision.
Since every change of a study or of its trials raises the revision, whatever was read since then was still true. A try
that comes too late, or meets anything out of the ordinary (an error, nothing to change, a query of Django's own), has
changed nothing and is forgotten: the action runs again in a transaction that holds the study's row lock, as all others
do.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import TypeVar

from django.db import connection

from service.studies import actions
from service.studies.models import Study
from service.tenancy import access, attempt
from service.tenancy.principal import Principal

Answer = TypeVar("Answer")

_REMEMBERED = 1000
_Key = tuple[int, str | int]


@dataclass(frozen=True, slots=True)
class _Left:
    """A study as a change of this process left it, and this machine's monotonic clock at that time."""

    study: Study
    at: float


_left: OrderedDict[_Key, _Left] = OrderedDict()
_guard = Lock()
# Threads of one process take turns with a study: each would only make the other's try come too late.
_turns = [Lock() for _ in range(64)]


def change(principal: Principal, study: str | int, action: Callable[[Study], Answer]) -> Answer:
    """What `action` answers to the study of this name or primary key.

    It may change the study as under its lock, and ends with `conclude`. It may be called twice, and must change nothing
    else. Raises NotFound.
    """
    key = (principal.tenant_id, study)
    with _turns[hash(key) % len(_turns)]:
        with _guard:
            left = _left.pop(key, None)
        if left is not None and not connection.in_atomic_block:
            twin = _twin(left)
            with suppress(Exception, attempt.NeedsTransaction), attempt.begun() as trying:
                # What went wrong goes wrong again below, from certain knowledge; a connection that broke does too.
                answer = action(twin)
                if trying.done:
                    _remember(key, twin)
                    return answer
        with access.work(principal):
            locked = actions.lock(principal, study) if isinstance(study, str) else actions.lock_by_id(principal, study)
            answer = action(locked)
        if not connection.in_atomic_block:
            _remember(key, locked)
        return answer


def _remember(key: _Key, study: Study) -> None:
    with _guard:
        _left[key] = _Left(study, time.monotonic())
        _left.move_to_end(key)
        while len(_left) > _REMEMBERED:
            _left.popitem(last=False)


def _twin(left: _Left) -> Study:
    """A copy to work on. Its time is the database's, as far as this machine's clock can tell."""
    twin = Study.__new__(Study)
    twin.__dict__.update(left.study.__dict__)
    twin.changed = twin.stopping = False
    twin.noted = {}
    twin.database_time = left.study.database_time + timedelta(seconds=time.monotonic() - left.at)
    return twin
