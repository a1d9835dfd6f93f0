"""Forks of this process: no call is inside gRPC at the fork, and a child gets connections and names of its own.

gRPC stops its threads at a fork and starts them again in both processes, but only if no thread is inside it. Otherwise
the child's calls hang, or the child is killed. Therefore the fork waits for short calls, and ends those that the
service holds; the parent sends them again.
"""

import os
import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

from trimtab.errors import Unavailable

# How long a fork waits for calls that end by themselves, and then for those that it ends, in seconds.
GRACE_SECONDS = 0.02
LONGEST_SECONDS = 5.0

_SPAWN = "Start the process with the method 'spawn' or 'forkserver' of multiprocessing, or with subprocess."


class Follower(Protocol):
    """An object that begins again in a forked child."""

    def after_fork(self) -> None:
        """Begin again. Only the thread that has forked exists, and locks may have been locked by others."""


class Gate:
    """The place that every call passes on its way into gRPC and out of it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._forking = False
        self._own = threading.local()
        # How many calls are inside, by the function that ends them.
        self._inside: dict[Callable[[], None], int] = {}
        self._refusal = ""

    def enter(self, end: Callable[[], None]) -> None:
        """Wait while the process forks, and count a call. A fork may call `end`, after which the call ends early.

        Raises:
            Unavailable: this process was forked in a way after which gRPC does not work in it (`forked`).
        """
        with self._changed:
            while self._forking:
                self._changed.wait()
            if self._refusal:
                raise Unavailable("forked", self._refusal)
            self._inside[end] = self._inside.get(end, 0) + 1
            self._own.depth = self._depth() + 1

    def leave(self, end: Callable[[], None]) -> None:
        """Count the end of a call."""
        with self._changed:
            self._own.depth -= 1
            self._inside[end] -= 1
            if not self._inside[end]:
                del self._inside[end]
                self._changed.notify_all()

    def _depth(self) -> int:
        depth: int = getattr(self._own, "depth", 0)
        return depth

    def before(self) -> None:
        """Keep calls out, and wait until none is inside."""
        self._changed.acquire()
        self._forking = True
        if self._inside and not self._depth():
            self._changed.wait_for(self._is_empty, GRACE_SECONDS)
            for end in tuple(self._inside):
                end()
            self._changed.wait_for(self._is_empty, LONGEST_SECONDS)

    def _is_empty(self) -> bool:
        return not self._inside

    def after_in_parent(self) -> None:
        """Let the calls in again."""
        self._forking = False
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        """Begin again."""
        refusal = self._refusal or _refusal(bool(self._inside))
        Gate.__init__(self)
        self._refusal = refusal


def _refusal(is_dirty: bool) -> str:
    """Return why gRPC does not work in this child; "" if it does."""
    if is_dirty:
        return f"The parent process was forked during a call to the service, after which gRPC does not work. {_SPAWN}"
    if os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "1").lower() in ("0", "false", "no", "n", "f"):
        return f"GRPC_ENABLE_FORK_SUPPORT switches off gRPC's support of forks. Unset it. {_SPAWN}"
    return ""


gate = Gate()
_followers: WeakSet[Follower] = WeakSet()
# Objects of gRPC that a child has inherited. They must never be freed there, because that would call into gRPC.
_inherited: list[object] = []


def follow(follower: Follower) -> None:
    """Call the object's `after_fork` in each forked child, as long as the object exists."""
    _followers.add(follower)


def keep(inherited: object) -> None:
    """Keep an object of gRPC that this child has inherited, as long as the process lives."""
    _inherited.append(inherited)


class Guard:
    """A reentrant lock that is free in a forked child, whichever thread of the parent had it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        follow(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def after_fork(self) -> None:
        """Replace the lock."""
        self._lock = threading.RLock()


def _after_in_child() -> None:
    gate.after_in_child()
    for follower in tuple(_followers):
        follower.after_fork()


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=gate.before, after_in_parent=gate.after_in_parent, after_in_child=_after_in_child)
