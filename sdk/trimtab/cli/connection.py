"""The connection of a command to the service."""

import trimtab


def connect() -> "trimtab.Client":
    """Return a client. A person at a terminal should soon learn that the service does not answer."""
    return trimtab.Client(retry_seconds=10.0)
