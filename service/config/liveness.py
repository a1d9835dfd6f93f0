"""A sign of life of this process: a file that it touches every few seconds, if the environment names one.

`trimtab-service up` kills and restarts a process whose file stays untouched (embedded/processes.py). Web and gRPC touch
it from their event loops, which is where they hang if they hang.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

VARIABLE = "TRIMTAB_ALIVE_FILE"
EVERY_SECONDS = 3.0


async def touch() -> None:
    """Touch the file once. A full disk is not a reason to end the process."""
    touch_now()


def touch_now() -> None:
    """Touch the file once, from a process without an event loop."""
    name = os.environ.get(VARIABLE)
    if name:
        with suppress(OSError):
            Path(name).touch()


async def keep_touching() -> None:
    """Touch the file as long as the event loop turns."""
    while True:
        touch_now()
        await asyncio.sleep(EVERY_SECONDS)


def touch_from_thread() -> None:
    """Touch the file as long as this process runs. Its main thread may compute for a long time."""
    threading.Thread(target=_keep_touching, name="liveness", daemon=True).start()


def _keep_touching() -> None:
    while True:
        touch_now()
        time.sleep(EVERY_SECONDS)
