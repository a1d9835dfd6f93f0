"""The name under which a process asks for trials."""

import os
import socket
import uuid

from trimtab._internal.connection import forks

# The service takes 200 characters.
_LONGEST_GIVEN = 150


class ClientId:
    """The name under which this process asks for trials; `given` by the user, or a new one.

    A forked child and a process that unpickles a client have names of their own (`is_copy`), because two processes with
    one name would get the same trials.
    """

    def __init__(self, given: str | None, *, is_copy: bool = False) -> None:
        self.given = given
        self._name = _new(given) if is_copy or not given else given
        forks.follow(self)

    def __str__(self) -> str:
        return self._name

    def after_fork(self) -> None:
        """Take a new name."""
        self._name = _new(self.given)


def _new(given: str | None) -> str:
    own = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    return f"{(given or socket.gethostname())[:_LONGEST_GIVEN]}-{own}"
