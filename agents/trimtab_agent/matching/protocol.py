"""The line protocol between submission hosts and the agent, over a Unix socket.

A message is lines of a key, a blank and a value, between a first and a last line:

    trimtab-match 1 ask          trimtab-match 1
    kind sbatch                  submission 0123...
    name angry_ant_2             set OMP_NUM_THREADS=4
    arg /home/ann/ant.sh         preload /opt/trimtab/libsro.so
    end                          end

In a value `\\n` stands for a line break and `\\\\` for a backslash. Unknown keys are ignored, so that either side may
be newer. One connection carries one request and one answer.

This module imports nothing else of the agent: `trimtab-agent wrap` must start quickly.
"""

import re
from collections.abc import Iterable

TITLE = "trimtab-match 1"
END = "end"
# Maximum bytes of a message.
MOST_BYTES = 64 << 10
# Seconds in which a client must have its answer. Afterwards it continues without one.
CLIENT_TIME = 0.5
DEFAULT_SOCKET = "/run/trimtab/match.sock"

ASK, SUBMITTED, ENDED = "ask", "submitted", "ended"

Pairs = list[tuple[str, str]]
_ESCAPES = {"\\\\": "\\", "\\n": "\n"}


class MalformedError(Exception):
    """The text is not a message of this protocol."""


def write(verb: str, pairs: Iterable[tuple[str, str]]) -> bytes:
    """Return a request (with its verb) or an answer (verb "") as bytes."""
    lines = [f"{TITLE} {verb}".rstrip()]
    for key, value in pairs:
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{key} {escaped}")
    lines += [END, ""]
    return "\n".join(lines).encode(errors="surrogateescape")


def read(data: bytes) -> tuple[str, Pairs]:
    """Return the verb and the pairs of a message.

    Raises:
        MalformedError: it is not a complete message.
    """
    lines = data.decode(errors="surrogateescape").split("\n")
    if len(lines) < 3 or lines[-2:] != [END, ""] or not lines[0].startswith(TITLE):
        raise MalformedError("the message is incomplete or of another protocol")
    verb = lines[0][len(TITLE) :].strip()
    pairs = []
    for line in lines[1:-2]:
        key, blank, value = line.partition(" ")
        if not key or not blank:
            raise MalformedError(f"{line[:40]!r} is not a key and a value")
        pairs.append((key, re.sub(r"\\[\\n]", lambda match: _ESCAPES[match[0]], value)))
    return verb, pairs
