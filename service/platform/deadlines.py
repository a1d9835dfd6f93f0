"""Deadlines of computations in CPU time, so that no computation holds up what others need.

    result = deadlines.run(10.0, compute, caller)

If the thread has used up its seconds of CPU in the function, or if the caller has gone, the function ends wherever it
is, and `Exceeded` or `Unwanted` is raised. The function need not look at a clock: one thread of the process watches all
computations and raises `Ended` in their threads. Time that a thread waits, for a lock or on a busy machine, does not
count. `Ended` is raised between two steps of Python, also in the first step of the `__exit__` of a context manager.
That is why `run` is none. A computation that a library does not leave for a long time ends its process, which a
supervisor starts again.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from queue import SimpleQueue
from typing import NoReturn, TypeVar

from service.logger import Logger

# Seconds between two looks at the clocks.
_LOOK_SECONDS = 0.1
# A computation that nobody wants any more may use so many seconds of CPU: a short one finishes what it has begun.
UNWANTED_SECONDS = 1.0
# If code has caught `Ended` and goes on, it is raised again after so many seconds of CPU.
_AGAIN_SECONDS = 1.0
# A computation that goes on for so many seconds of CPU does not leave a library.
STUCK_SECONDS = 20.0
# The status with which a process ends itself.
EXIT_STATUS = 75
_NOBODY = "Nobody waits for the result any more."

T = TypeVar("T")

logger = Logger(__name__)


class Ended(BaseException):
    """The end of a computation, raised inside of it. No `except Exception` may catch it."""


class Exceeded(Exception):
    """A computation has used up its seconds of CPU."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"It needed more than {seconds:g} s of CPU.")
        self.seconds = seconds


class Unwanted(Exception):
    """Nobody waits for the result of a computation any more."""


class Caller:
    """Somebody who waits for the result of a computation."""

    __slots__ = ("gone",)

    def __init__(self) -> None:
        self.gone = False

    def leave(self) -> None:
        """Note that nobody waits any more. Any thread may call it."""
        self.gone = True


# The caller of the present request. The threads that serve the request get it with their context.
present: ContextVar[Caller | None] = ContextVar("caller", default=None)


def end_process() -> NoReturn:
    """End this process, because a computation does not leave a library. Write where it is to the log."""
    logger.critical("a computation goes on after its deadline, so this process ends and is replaced")
    with suppress(Exception):
        faulthandler.dump_traceback(all_threads=True)
    os._exit(EXIT_STATUS)


def run(
    seconds: float,
    function: Callable[[], T],
    caller: Caller | None = None,
    stuck: Callable[[], object] | None = None,
    stuck_seconds: float | None = None,
) -> T:
    """Return what `function` returns after at most `seconds` of CPU of this thread, while `caller` waits.

    The caller is by default the present one. A call within another one has seconds of its own, and only the outer one
    ends for a caller that has gone. If the function goes on for `stuck_seconds` of CPU after its end (by default
    STUCK_SECONDS), `stuck` is called in another thread, by default `end_process`. Raises Exceeded and Unwanted.
    """
    thread = threading.get_ident()
    depth = len(_running.get(thread, ()))
    if caller is None and depth == 0:
        caller = present.get()
    if caller is not None and caller.gone:
        raise Unwanted(_NOBODY)
    watched = _Watched(seconds, caller, stuck or end_process, STUCK_SECONDS if stuck_seconds is None else stuck_seconds)
    try:
        try:
            _watch(thread, watched)
            return function()
        finally:
            _leave(thread, depth)
    except Ended:
        # It may have been raised within `_leave`.
        _leave(thread, depth)
        if watched.reason is None:
            raise  # an outer call is to end
        raise watched.reason from None


class _Watched:
    """A computation in the present thread. `reason`: why it has to end."""

    __slots__ = (
        "_again",
        "_began",
        "_caller",
        "_clock",
        "_ended_at",
        "_most",
        "_seconds",
        "_thread",
        "reason",
        "stuck",
    )

    def __init__(self, seconds: float, caller: Caller | None, stuck: Callable[[], object], most: float) -> None:
        self._caller, self.stuck, self._most = caller, stuck, most
        self.reason: Exceeded | Unwanted | None = None
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._seconds, self._began = seconds, time.thread_time()
        self._again = self._ended_at = 0.0

    def look(self) -> bool:
        """Raise Ended in the computation if it has to end; return whether it cannot be ended so."""
        used = time.clock_gettime(self._clock) - self._began
        unwanted = self._caller is not None and self._caller.gone
        if used <= (min(self._seconds, UNWANTED_SECONDS) if unwanted else self._seconds):
            return False
        if self.reason is None:
            over = used > self._seconds
            self.reason = Exceeded(self._seconds) if over else Unwanted(_NOBODY)
            self._ended_at = self._again = used
        if used >= self._again:
            self._again = used + _AGAIN_SECONDS
            _raise_in(self._thread, Ended)
        return used > self._ended_at + self._most


# The computations of each thread, the outermost first. The lock keeps the watcher from raising in a thread that has
# left its computation.
_lock = threading.Lock()
_running: dict[int, list[_Watched]] = {}
_watcher: threading.Thread | None = None
# Wakes the watcher, which sleeps while nothing runs. Its methods are written in C, so `Ended` cannot divide them.
_begun: SimpleQueue[None] = SimpleQueue()
_asleep = True


def _watch(thread: int, watched: _Watched) -> None:
    global _watcher, _asleep
    with _lock:
        _running.setdefault(thread, []).append(watched)
        if _watcher is None:
            _watcher = threading.Thread(target=_keep_looking, name="deadlines", daemon=True)
            _watcher.start()
        if _asleep:
            _asleep = False
            _begun.put(None)


def _leave(thread: int, depth: int) -> None:
    """Forget the computations of a thread from this depth on. A second call changes nothing."""
    with _lock:
        mine = _running.get(thread, [])
        left = mine[depth:]
        del mine[depth:]
        if not mine:
            _running.pop(thread, None)
        if any(one.reason for one in left):
            _raise_in(thread, None)  # take back an exception that has not been raised yet


def _keep_looking() -> None:
    while True:
        _begun.get()
        while _look_at_all():
            time.sleep(_LOOK_SECONDS)


def _look_at_all() -> bool:
    """Look at each computation once; return whether there are some. Otherwise the watcher is to sleep."""
    global _asleep
    with _lock:
        running = [one for each in _running.values() for one in each]
        _asleep = not running
        stuck = [one for one in running if one.look()]
    for one in stuck:
        one.stuck()
    return bool(running)


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Let a thread of this process raise an exception at its next step of Python; None: take it back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if exception is None else ctypes.py_object(exception)
    )


def _forget_after_fork() -> None:
    """Begin again in a forked process, which has none of the threads."""
    global _lock, _running, _watcher, _begun, _asleep
    _lock, _running, _watcher, _begun, _asleep = threading.Lock(), {}, None, SimpleQueue(), True


os.register_at_fork(after_in_child=_forget_after_fork)
