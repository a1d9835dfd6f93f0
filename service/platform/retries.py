"""Repetition of a step that failed because a server was away for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from service.logger import Logger

T = TypeVar("T")

PAUSE_SECONDS = 0.2

logger = Logger(__name__)


def retry_until(
    step: Callable[[], T],
    errors: tuple[type[Exception], ...],
    end: float,
    recover: Callable[[], object] = lambda: None,
) -> T:
    """Return the result of `step`, which is repeated after these errors until the time `end` of the monotonic clock.

    `recover` is called after each error, for example to close a broken connection. Raises the last error.
    """
    while True:
        try:
            return step()
        except errors as error:
            recover()
            if time.monotonic() > end:
                raise
            logger.warning("a step is repeated after an error", error=error)
            time.sleep(PAUSE_SECONDS)
