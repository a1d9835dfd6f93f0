"""Waiting for a condition, whatever the speed of the machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

# The longest wait for anything, in seconds. On a machine with two busy loops for each core everything takes far less,
# so that only a test that hangs comes to the end of it. A process that a test ends would itself run for longer.
PATIENCE = 600.0
# How often a condition is looked at: at first often, later less, since to look may start a program.
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.01, 0.1, 1.2

Answer = TypeVar("Answer")
What = str | Callable[[], str]


def wait_for(condition: Callable[[], Answer], what: What = "the condition holds") -> Answer:
    """Wait until `condition` returns something true, and return it.

    `what` says in the message of a failing test what should have come about. A function is called at the end only, so
    that it may name the state that was reached, or the end of a log.
    """
    end, pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
    while not (answer := condition()):
        assert time.monotonic() < end, _message(what)
        time.sleep(pause)
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)
    return answer


async def wait_for_async(condition: Callable[[], Answer], what: What = "the condition holds") -> Answer:
    """Wait as `wait_for` does, and let the event loop work meanwhile."""
    end, pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
    while not (answer := condition()):
        assert time.monotonic() < end, _message(what)
        await asyncio.sleep(pause)
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)
    return answer


def _message(what: What) -> str:
    return f"not within {PATIENCE:.0f} s: {what if isinstance(what, str) else what()}"
