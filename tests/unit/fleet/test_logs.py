"""Logs of trials that run on agents, against a real PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection

from service.fleet import logs
from service.planning.create import delete_study
from service.studies import selectors as study_selectors
from service.studies.models import TrialLog
from service.tenancy import access
from service.tenancy.principal import Principal
from tests.factories.fleet import acquire, create, expire, refused
from tests.factories.patience import PATIENCE


def test_a_study_may_be_deleted_while_a_log_is_appended(
    principal: Principal, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    written, deleted = Event(), Event()
    put = access.put

    def put_slowly(principal: Principal, row: TrialLog) -> None:
        put(principal, row)
        written.set()
        deleted.wait(PATIENCE)

    def append() -> None:
        try:
            logs.append_log(principal, agent_id=agent, lease=grant.lease, offset=0, data=b"out")
        finally:
            connection.close()

    monkeypatch.setattr(access, "put", put_slowly)
    with ThreadPoolExecutor(1) as thread:
        appended = thread.submit(append)
        assert written.wait(PATIENCE)
        delete_study(principal, name)
        deleted.set()
        refused("lease_lost", appended.result)


def test_a_log_is_appended_at_its_offset(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)

    def append(offset: int, data: bytes) -> int:
        return logs.append_log(principal, agent_id=agent, lease=grant.lease, offset=offset, data=data)

    assert append(0, b"hello ") == 6
    assert append(0, b"hello ") == 6
    assert append(3, b"lo world") == 11
    assert append(20, b"gap") == 11
    assert study_selectors.get_trial(principal, name, 1).log == "hello world"
    assert append(11, b"x" * 100_000) == 100_011
    assert len(study_selectors.get_trial(principal, name, 1).log) == logs.LOG_TAIL_BYTES
    # The job started again within the same lease, so the log starts again too, at whatever offset that is noticed.
    assert append(0, b"hello ") == 100_011
    assert append(100_000, b"other") == 0
    assert append(0, b"anew: ") == 6
    assert append(0, b"anew, ") == 6
    assert append(6, b"more") == 10
    assert study_selectors.get_trial(principal, name, 1).log == "anew, more"
    first = grant
    expire(principal)
    (grant,) = acquire(principal)
    assert append(0, b"again") == 5
    assert study_selectors.get_trial(principal, name, 1).log == "again"
    grant = first
    refused("lease_lost", lambda: append(100_011, b"late"))
