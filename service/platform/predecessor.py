"""The knowledge of a process about the one that it replaces, from the environment that its supervisor sets.

A process that nobody supervises in this way knows its own name only: its host and process number, which a container
that is started again keeps.
"""

from __future__ import annotations

import os
import socket
from enum import StrEnum

NAME_VARIABLE = "TRIMTAB_PROCESS_NAME"
END_VARIABLE = "TRIMTAB_PREDECESSOR"


class End(StrEnum):
    """How a process has ended: others stopped it, or it died or hung until it was killed, perhaps by its own work."""

    STOPPED = "stopped"
    DIED = "died"
    HUNG = "hung"


def name(part: str = "") -> str:
    """Return the name of this process, which its successor has too, or that of a `part` of it."""
    return f"{socket.gethostname()}/{local_name(part)}"


def local_name(part: str = "") -> str:
    """Return the name without the host: what NAME_VARIABLE is to be in a process that is this `part`."""
    return "-".join(filter(None, (os.environ.get(NAME_VARIABLE) or str(os.getpid()), part)))


def end() -> End:
    """Return how the predecessor has ended. Without a supervisor that knows, it counts as dead of its own work."""
    known = os.environ.get(END_VARIABLE)
    return End(known) if known in list(End) else End.DIED
