"""A client of the agent's socket that never waits longer than it may."""

import socket
import time
from collections.abc import Iterable

from trimtab_agent.matching import protocol


class NoAnswerError(Exception):
    """The agent has not answered. `str(error)` says why."""


def talk(
    path: str, verb: str, pairs: Iterable[tuple[str, str]], seconds: float = protocol.CLIENT_TIME
) -> protocol.Pairs:
    """Send a request and return the pairs of the answer.

    Raises:
        NoAnswerError: there is no complete answer within `seconds`.
    """
    end = time.monotonic() + seconds
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            # A full queue of the agent is an error at once, because a socket with a time limit does not block.
            link.settimeout(seconds)
            link.connect(path)
            link.settimeout(_left(end))
            link.sendall(protocol.write(verb, pairs))
            data = b""
            while not data.endswith(b"\nend\n"):
                link.settimeout(_left(end))
                more = link.recv(protocol.MOST_BYTES)
                data += more
                if not more or len(data) > protocol.MOST_BYTES:
                    break
        return protocol.read(data)[1]
    except (OSError, protocol.MalformedError) as error:
        raise NoAnswerError(str(error)) from None


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the agent has not answered in time")
    return left
