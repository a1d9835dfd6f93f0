"""Processes that are kept alive until this one is told to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

from service.embedded.processes import Child, stop
from service.embedded.signals import Waiting
from trimtab_components.terminal import write

# What tells a parent to stop, or to look at its children.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
_LOOK_SECONDS = 1.0


def keep(children: Sequence[Child], signals: Waiting, touch: Callable[[], object] = lambda: None) -> None:
    """Start the children, and keep them alive until SIGTERM or SIGINT is among `signals`, which are those of SIGNALS.

    `touch` is called as long as this process looks after them.
    """
    try:
        for child in children:
            child.start()
        while True:
            touch()
            for child in children:
                if happened := child.keep_alive():
                    write(f"trimtab-service: {happened}", error=True)
            due = [child.not_before - time.monotonic() for child in children if child.process is None]
            if signals.wait(max(0.0, min([_LOOK_SECONDS, *due]))) - {signal.SIGCHLD}:
                return
    finally:
        stop(children)
