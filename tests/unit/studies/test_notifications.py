"""The door-bell: rings on commit, survives its connection, never keeps anyone waiting for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection

from service.planning.create import create_study, delete_study, update_state
from service.studies import actions, notifications, selectors
from service.studies.notifications import Bell, listener
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.ask import ask as ask_trials
from service.trials.tell import stop_trial
from tests.factories.domain import make_execution, make_spec, study_name


async def in_thread(call: Callable[[], object]) -> object:
    def work() -> object:
        try:
            return call()
        finally:
            connection.close()

    return await asyncio.to_thread(work)


async def rings(bell: Bell) -> bool:
    """Whether it rings, however slow the machine is."""
    for _ in range(24):
        if await bell.wait(5):
            return True
    return False


async def settled(bell: Bell) -> None:
    """The bell rings once when its connection stands; wait for that."""
    assert await rings(bell)


async def test_it_rings_for_the_study_that_changed(principal: Principal) -> None:
    mine, other = [await asyncio.to_thread(create_study, principal, study_name(), make_spec()) for _ in range(2)]
    async with listener().watch(study=mine.pk) as bell:
        await settled(bell)
        await in_thread(lambda: ask_trials(principal, other.name))
        assert not await bell.wait(0.3)
        await in_thread(lambda: ask_trials(principal, mine.name))
        assert await rings(bell)
        assert not await bell.wait(0.05)
    await listener().close()


async def test_it_rings_for_agents_when_there_is_work(principal: Principal) -> None:
    async with listener().watch(work=True) as bell:
        await settled(bell)
        await in_thread(lambda: create_study(principal, study_name(), make_spec()))
        assert not await bell.wait(0.3)
        spec = make_spec(execution=make_execution())
        await in_thread(lambda: create_study(principal, study_name(), spec))
        assert await rings(bell)
    await listener().close()


async def test_it_rings_for_agents_when_they_are_to_stop_a_trial(principal: Principal) -> None:
    """And not for each of their results."""
    name, told = study_name(), study_name()
    await in_thread(lambda: create_study(principal, told, make_spec()))
    async with listener().watch(stop=principal.tenant_id) as bell:
        await settled(bell)
        await in_thread(lambda: ask_trials(principal, told))
        await in_thread(lambda: stop_trial(principal, told, 1))
        await in_thread(lambda: create_study(principal, name, make_spec(execution=make_execution())))
        await in_thread(lambda: stop_trial(principal, name, 1))
        assert not await bell.wait(0.3), "what no agent runs is no agent's business"
        async with listener().watch(stop=principal.tenant_id + 1) as others:
            await in_thread(lambda: lease_and_stop(principal, name))
            assert await rings(bell)
            assert not await others.wait(0.1)
        await in_thread(lambda: update_state(principal, name, "ABORTED"))
        assert await rings(bell)
        await in_thread(lambda: delete_study(principal, name))
        assert await rings(bell)
    await listener().close()


def lease_and_stop(principal: Principal, name: str) -> None:
    with access.work(principal):
        study = actions.lock(principal, name)
        actions.start_trials(principal, study, actions.waiting_trials(principal, study, 1), agent="agent")
        actions.conclude(principal, study, "lease.grant")
    stop_trial(principal, name, 2)


async def test_it_rings_again_after_its_connection_was_cut(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "_RECONNECT_SECONDS", 0.05)
    study = await asyncio.to_thread(create_study, principal, study_name(), make_spec())

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
            )
            # That of a test before this one may be on its way out.
            assert (True,) in cursor.fetchall()

    async with listener().watch(study=study.pk) as bell:
        await settled(bell)
        await in_thread(cut)
        # Something may have been missed: it rings when it is connected again.
        await settled(bell)
        await in_thread(lambda: ask_trials(principal, study.name))
        assert await rings(bell)
    await listener().close()


async def test_a_wait_is_bounded_and_nothing_is_kept(principal: Principal) -> None:
    bells = notifications.Listener()
    async with bells.watch(operation=uuid4()) as bell:
        await settled(bell)
        assert not await bell.wait(0.05)
        assert not await bell.wait(-1)
    assert bells._bells == {}
    await bells.close()


async def test_the_revision_is_visible_when_it_rings(principal: Principal) -> None:
    study = await asyncio.to_thread(create_study, principal, study_name(), make_spec())
    async with listener().watch(study=study.pk) as bell:
        await settled(bell)
        seen = study.revision
        for _ in range(5):
            await in_thread(lambda: ask_trials(principal, study.name))
            assert await rings(bell)
            changes = await asyncio.to_thread(selectors.changes, principal, study.name, seen)
            assert len(changes.trials) == 1
            seen = changes.revision
    await listener().close()
