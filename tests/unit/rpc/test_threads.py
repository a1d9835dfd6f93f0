"""The threads of the gRPC process: deadlines, callers that have gone, shares of tenants."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from service.core.errors import ResourceExhausted
from service.platform import deadlines
from service.rpc.threads import DatabaseThreads, choose_lane
from tests.factories.patience import PATIENCE


def in_loop(test: Callable[[DatabaseThreads], Awaitable[None]], size: int = 4) -> None:
    threads = DatabaseThreads(size)
    try:
        asyncio.run(asyncio.wait_for(_awaited(test(threads)), PATIENCE))
    finally:
        threads.close()


async def _awaited(test: Awaitable[None]) -> None:
    await test


async def called(threads: DatabaseThreads, tenant: object, lane: object, function: Callable[[], object]) -> object:
    choose_lane(tenant, lane)
    return await threads.run(function)


def spin() -> None:
    end = time.thread_time() + PATIENCE
    while time.thread_time() < end:
        pass


def test_a_call_ends_after_its_seconds_of_processor_time(settings: Any) -> None:
    settings.TRIMTAB_REQUEST_CPU_SECONDS = 0.2

    async def test(threads: DatabaseThreads) -> None:
        with pytest.raises(ResourceExhausted) as caught:
            await threads.run(spin)
        assert (caught.value.code, caught.value.retryable) == ("computation_too_long", False)
        assert await threads.run(lambda: 1) == 1

    in_loop(test)


def test_a_computation_ends_when_its_caller_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "UNWANTED_SECONDS", 0.1)
    begun, ended = threading.Event(), threading.Event()

    def compute() -> None:
        begun.set()
        try:
            spin()
        finally:
            ended.set()

    async def test(threads: DatabaseThreads) -> None:
        call = asyncio.create_task(called(threads, 1, "a", compute))
        await asyncio.to_thread(begun.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(ended.wait, PATIENCE)

    in_loop(test)


def test_a_call_whose_caller_has_gone_is_not_begun() -> None:
    release, begun = threading.Event(), []

    async def test(threads: DatabaseThreads) -> None:
        held = asyncio.create_task(called(threads, 1, "a", release.wait))
        await asyncio.sleep(0)
        # It has its place, and waits for the only thread.
        call = asyncio.create_task(called(threads, 2, "b", lambda: begun.append(1)))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.sleep(0)
        release.set()
        await held
        assert await called(threads, 2, "b", lambda: 1) == 1
        assert begun == []

    in_loop(test, size=1)


def test_a_tenant_leaves_threads_to_others() -> None:
    release = threading.Event()

    async def test(threads: DatabaseThreads) -> None:
        held = [asyncio.create_task(called(threads, 1, lane, release.wait)) for lane in "abcdefgh"]
        await asyncio.sleep(0.05)
        assert await called(threads, 2, "a", lambda: 1) == 1
        release.set()
        assert await asyncio.gather(*held) == [True] * 8

    in_loop(test)


def test_a_cancelled_call_that_waits_gives_its_places_back() -> None:
    release = threading.Event()

    async def test(threads: DatabaseThreads) -> None:
        held = [asyncio.create_task(called(threads, 1, lane, release.wait)) for lane in "abc"]
        await asyncio.sleep(0.05)
        waiting = [asyncio.create_task(called(threads, 1, "d", lambda: 1)) for _ in range(4)]
        await asyncio.sleep(0.05)
        for call in waiting:
            call.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        release.set()
        await asyncio.gather(*held)
        found = await asyncio.gather(*(called(threads, 1, "d", lambda: 1) for _ in range(4)))
        assert found == [1] * 4

    in_loop(test)
