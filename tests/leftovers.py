"""End every process that a run of tests has started, in whichever way the run ends.

The work runs in a child process. This process, its guardian, adopts each descendant whose parent dies, and ends them
when the child has ended or was killed. If the guardian is killed, the child receives a signal and does the same. So
nothing is left after Ctrl-C, SIGTERM, or the death of a worker process that had started a service.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import psutil

# Constants of prctl(2).
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Processes such as PostgreSQL and a Slurm end by themselves within this time of SIGTERM. SIGKILL follows.
SECONDS_TO_END = 20.0


def without_leftovers(work: Callable[[], int]) -> int:
    """Run `work` in a child process and return its exit code, when no process that it has started is left.

    SIGINT and SIGTERM interrupt the work once, as Ctrl-C does; a second signal kills it. Call this while the process
    has one thread.
    """
    _adopt_orphans()
    child = os.fork()
    if child == 0:
        _run(work)
    signals = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGINT if signals == 1 else signal.SIGKILL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    ended, status = os.waitpid(-1, 0)
    while ended != child:  # an orphan
        ended, status = os.waitpid(-1, 0)
    end_descendants()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def end_descendants() -> None:
    """End all processes below this one, and wait until they are gone."""
    while left := psutil.Process().children(recursive=True):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        _, alive = psutil.wait_procs(left, SECONDS_TO_END)
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(alive)


def _run(work: Callable[[], int]) -> None:
    """Run the work in this process, and end with its exit code."""
    # In a group of its own, so that Ctrl-C reaches only the guardian, which interrupts it once.
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupted_without_guardian)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    code = 1
    try:
        code = work()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        end_descendants()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _interrupted_without_guardian(number: int, frame: FrameType | None) -> None:
    _adopt_orphans()
    raise KeyboardInterrupt


def _adopt_orphans() -> None:
    """Make this process the parent of each descendant whose own parent dies (Linux alone)."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
