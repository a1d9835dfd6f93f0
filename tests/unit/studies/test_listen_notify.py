"""Notifications: they come on commit, survive a lost connection, and no wait is long without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection

from service.planning.create import create_study, delete_study, update_state
from service.studies import actions, listen_notify, selectors
from service.studies.change import changing
from service.studies.listen_notify import Subscription, listener
from service.tenancy.principal import Principal
from service.trials.ask import ask as ask_trials
from service.trials.tell import stop_trial
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.patience import PATIENCE


async def in_thread(call: Callable[[], object]) -> object:
    def work() -> object:
        try:
            return call()
        finally:
            connection.close()

    return await asyncio.to_thread(work)


async def notified(subscription: Subscription) -> bool:
    """Return whether a notification comes, however slow the machine is."""
    for _ in range(int(PATIENCE / 5)):
        if await subscription.wait(5):
            return True
    return False


async def settled(subscription: Subscription) -> None:
    """Wait for the notification that every subscription gets when its connection is made."""
    assert await notified(subscription)


async def test_the_study_that_changed_is_notified(principal: Principal) -> None:
    mine, other = [await asyncio.to_thread(create_study, principal, study_name(), make_spec()) for _ in range(2)]
    async with listener().subscribe(study=mine.pk) as subscription:
        await settled(subscription)
        await in_thread(lambda: ask_trials(principal, other.name))
        assert not await subscription.wait(0.3)
        await in_thread(lambda: ask_trials(principal, mine.name))
        assert await notified(subscription)
        assert not await subscription.wait(0.05)
    await listener().close()


async def test_agents_are_notified_of_work(principal: Principal) -> None:
    async with listener().subscribe(work=True) as subscription:
        await settled(subscription)
        await in_thread(lambda: create_study(principal, study_name(), make_spec()))
        assert not await subscription.wait(0.3)
        spec = make_spec(execution=make_execution())
        await in_thread(lambda: create_study(principal, study_name(), spec))
        assert await notified(subscription)
    await listener().close()


async def test_agents_are_notified_of_trials_to_stop(principal: Principal) -> None:
    """And not for each of their results."""
    name, reported = study_name(), study_name()
    await in_thread(lambda: create_study(principal, reported, make_spec()))
    async with listener().subscribe(stop=principal.tenant_id) as subscription:
        await settled(subscription)
        await in_thread(lambda: ask_trials(principal, reported))
        await in_thread(lambda: stop_trial(principal, reported, 1))
        await in_thread(lambda: create_study(principal, name, make_spec(execution=make_execution())))
        await in_thread(lambda: stop_trial(principal, name, 1))
        assert not await subscription.wait(0.3), "what no agent runs is no agent's business"
        async with listener().subscribe(stop=principal.tenant_id + 1) as others:
            await in_thread(lambda: lease_and_stop(principal, name))
            assert await notified(subscription)
            assert not await others.wait(0.1)
        await in_thread(lambda: update_state(principal, name, "ABORTED"))
        assert await notified(subscription)
        await in_thread(lambda: delete_study(principal, name))
        assert await notified(subscription)
    await listener().close()


def lease_and_stop(principal: Principal, name: str) -> None:
    with changing(principal, name, "lease.grant") as work:
        actions.start_trials(work, actions.waiting_trials(work, 1), agent="agent")
    stop_trial(principal, name, 2)


async def test_notifications_come_again_after_the_connection_was_cut(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen_notify, "_RECONNECT_SECONDS", 0.05)
    study = await asyncio.to_thread(create_study, principal, study_name(), make_spec())

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
            )
            # That of a test before this one may be on its way out.
            assert (True,) in cursor.fetchall()

    async with listener().subscribe(study=study.pk) as subscription:
        await settled(subscription)
        await in_thread(cut)
        # Something may have been missed, so a notification comes when it is connected again.
        await settled(subscription)
        await in_thread(lambda: ask_trials(principal, study.name))
        assert await notified(subscription)
    await listener().close()


async def test_without_the_connection_a_caller_reads_again_and_again(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen_notify, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(listen_notify, "_RECONNECT_SECONDS", 3600)
    monkeypatch.setattr(listen_notify, "_connection_parameters", lambda: {"conninfo": "host=/nowhere"})
    listening = listen_notify.Listener()
    async with listening.subscribe(work=True) as subscription:
        assert [await subscription.wait(3600) for _ in range(3)] == [True] * 3
        assert not listening.is_connected
    await listening.close()


async def test_a_connection_that_does_not_answer_is_made_again(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its packets are lost on the way: a relay holds them back."""
    monkeypatch.setattr(listen_notify, "CHECK_SECONDS", 0.5)
    monkeypatch.setattr(listen_notify, "_RECONNECT_SECONDS", 0.05)
    known = listen_notify._connection_parameters()
    flows = asyncio.Event()
    flows.set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(f"{known['host']}/.s.PGSQL.{known['port']}")

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                await flows.wait()
                target.write(data)
            target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(listen_notify, "_connection_parameters", lambda: known | {"host": "127.0.0.1", "port": port})
    listening = listen_notify.Listener()
    async with listening.subscribe(work=True) as subscription:
        await settled(subscription)
        assert listening.is_connected
        flows.clear()
        # The round trip fails: everybody is to read.
        assert await subscription.wait(PATIENCE)
        assert not listening.is_connected
        flows.set()
        while not listening.is_connected:
            assert await subscription.wait(PATIENCE)
        await in_thread(lambda: create_study(principal, study_name(), make_spec(execution=make_execution())))
        assert await notified(subscription)
    await listening.close()
    server.close()


async def test_a_wait_is_bounded_and_nothing_is_kept(principal: Principal) -> None:
    listening = listen_notify.Listener()
    async with listening.subscribe(operation=uuid4()) as subscription:
        await settled(subscription)
        assert not await subscription.wait(0.05)
        assert not await subscription.wait(-1)
        assert listening.is_connected
    assert listening._subscriptions == {}
    await listening.close()


async def test_the_revision_is_visible_when_the_notification_comes(principal: Principal) -> None:
    study = await asyncio.to_thread(create_study, principal, study_name(), make_spec())
    async with listener().subscribe(study=study.pk) as subscription:
        await settled(subscription)
        seen = study.revision
        for _ in range(5):
            await in_thread(lambda: ask_trials(principal, study.name))
            assert await notified(subscription)
            changes = await asyncio.to_thread(selectors.changes, principal, study.name, seen)
            assert len(changes.trials) == 1
            seen = changes.revision
    await listener().close()
