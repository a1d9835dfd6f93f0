"""Start the process of a supervisor on the agent's own machine."""

import socket
import subprocess
import sys
from pathlib import Path


def start(script: Path, *arguments: str) -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    """Start a supervisor in a session of its own, and return this process's end of its socket with the process.

    The first argument of the script is the file descriptor of the supervisor's end. That end closes when this process
    dies, however it dies.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(theirs.fileno()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return ours, process
