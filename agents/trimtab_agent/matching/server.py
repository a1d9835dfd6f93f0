"""The Unix socket for submission hosts. A client's identity is what the kernel says (SO_PEERCRED)."""

import asyncio
import contextlib
import functools
import os
import pwd
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from trimtab_agent.errors import ConfigError
from trimtab_agent.logger import Logger
from trimtab_agent.matching import protocol
from trimtab_agent.matching.protocol import MalformedError, Pairs

logger = Logger(__name__)

# Maximum open connections, in total and of one user. Others are closed at once, and their jobs go unchanged.
MOST_CONNECTIONS = 256
MOST_OF_USER = 32
# Connections that the kernel accepts before the agent does.
BACKLOG = 128
# Seconds for reading a request and writing the answer.
CONNECTION_TIME = 2.0
# Users whose names are remembered.
MOST_USERS = 4096
CREDENTIALS = struct.Struct("3i")
_END = f"\n{protocol.END}\n".encode()

# Return the pairs of the answer for (verb, pairs, uid, user).
Answer = Callable[[str, Pairs, int, str], Awaitable[Pairs]]


class MatchServer:
    """Listens on a socket that every user of the machine may connect to."""

    def __init__(self, path: Path, answer: Answer, seconds: float) -> None:
        """Create the server. `seconds` is the longest time that an answer takes."""
        self._path = path
        self._answer = answer
        self._seconds = CONNECTION_TIME + seconds
        self._open: Counter[int] = Counter()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            ConfigError: the socket cannot be made.
        """
        try:
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            if self._path.is_socket():
                self._path.unlink()
            listening.bind(str(self._path))
            self._path.chmod(0o666)
            self._server = await asyncio.start_unix_server(
                self._serve, sock=listening, backlog=BACKLOG, limit=protocol.MOST_BYTES
            )
        except OSError as error:
            raise ConfigError(
                f"--match-socket {self._path} cannot be used: {error}. Give a path of at most 107 characters in a "
                "folder that this agent may write and all users may enter"
            ) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = writer.get_extra_info("socket")
        _, uid, _ = CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
        if self._open[uid] >= MOST_OF_USER or self._open.total() >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._open[uid] += 1
        try:
            async with asyncio.timeout(self._seconds):
                writer.write(await self._reply(await reader.readuntil(_END), uid))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            logger.debug("a connection for matching was closed", uid=uid, error=repr(error))
        except Exception:
            logger.exception("a request for matching was not answered", uid=uid)
        finally:
            # A client that reads nothing must not keep the transport open.
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()
            self._open[uid] -= 1
            if not self._open[uid]:
                del self._open[uid]

    async def _reply(self, data: bytes, uid: int) -> bytes:
        try:
            verb, pairs = protocol.read(data)
            user = await asyncio.to_thread(user_name, uid)
            return protocol.write("", await self._answer(verb, pairs, uid, user))
        except MalformedError as error:
            return protocol.write("", [("error", str(error))])


@functools.lru_cache(MOST_USERS)
def user_name(uid: int) -> str:
    """Return the name of a user, or the number if it has none. This may ask a directory service."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def folder_remark(path: Path) -> str:
    """Return why other users could replace the socket, or ""."""
    status = path.parent.stat()
    if status.st_mode & 0o022 and not status.st_mode & 0o1000:
        return f"{path.parent} can be written by other users, who could replace the agent's socket"
    if status.st_uid not in (0, os.geteuid()):
        return f"{path.parent} belongs to another user, who could replace the agent's socket"
    return ""
