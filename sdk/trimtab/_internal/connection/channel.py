"""A gRPC channel that is made at the first call, and again after a fork (forks.py)."""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
from grpc.experimental import ChannelOptions

from trimtab._internal.connection import forks
from trimtab.errors import Unavailable

OPTIONS = (
    # A page of a thousand trials may be larger than gRPC's default of 4 MiB.
    ("grpc.max_receive_message_length", 256 * 1024 * 1024),
    # gRPC's default back-off between connections grows to two minutes, too long after a restart.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Keepalive detects a machine that disappears while the client waits for an answer.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # Otherwise the channels of a forked child share the connections of its parent.
    ("grpc.use_local_subchannel_pool", 1),
    # Otherwise a thread of gRPC reads streams, and a fork cannot wait until it is outside of gRPC.
    (ChannelOptions.SingleThreadedUnaryStream, 1),
)


class Renewed(Exception):
    """A fork has ended a stream. Open it again."""


class Channel:
    """A channel whose methods stay valid over forks. Thread-safe. `open_channel` connects to the service."""

    def __init__(self, open_channel: Callable[[], grpc.Channel]) -> None:
        self._open = open_channel
        self._channel: grpc.Channel | None = None
        self._guard = forks.Guard()
        # It changes whenever the channel is replaced or closed.
        self.generation = 0
        self.closed = False
        forks.follow(self)

    def unary_unary(self, *arguments: Any, **options: Any) -> "_Unary":
        """Return a method. The generated stubs call this."""
        return _Unary(self, lambda channel: channel.unary_unary(*arguments, **options))

    def unary_stream(self, *arguments: Any, **options: Any) -> "_Streaming":
        """Return a method whose answer is a stream. The generated stubs call this."""
        return _Streaming(self, lambda channel: channel.unary_stream(*arguments, **options))

    def current(self) -> tuple[int, grpc.Channel]:
        """Return the channel and its generation. Raises Unavailable: it is closed for good (`client_closed`)."""
        with self._guard:
            self.check_open()
            if self._channel is None:
                self._channel = self._open()
            return self.generation, self._channel

    def check_open(self) -> None:
        """Raise Unavailable if the channel is closed for good."""
        if self.closed:
            raise Unavailable("client_closed", "This client is closed. Create a new one.")

    def close(self) -> None:
        """Close the channel for good, which ends the calls in it."""
        self.closed = True
        self.renew()

    def renew(self) -> None:
        """Close the channel, which ends the calls in it, and open another one.

        If a process has no open channel, a thread of gRPC shuts gRPC down, and has its lock. A child that is forked
        at that time waits for this lock for ever. Therefore the new channel, which connects later, is opened first.
        """
        with self._guard:
            self.generation += 1
            before, self._channel = self._channel, None if self.closed else self._open()
            if before is not None:
                before.close()

    def after_fork(self) -> None:
        """Leave the parent's channel alone."""
        self.generation += 1
        forks.keep(self._channel)
        self._channel = None


class _Method:
    """A method of a channel."""

    def __init__(self, owner: Channel, bind: Callable[[grpc.Channel], Any]) -> None:
        self._owner = owner
        self._bind = bind
        self._bound: tuple[int, Any] = (-1, None)

    def _current(self) -> tuple[int, Any]:
        """Return the method of the current channel, and the channel's generation."""
        generation, channel = self._owner.current()
        bound = self._bound
        if bound[0] != generation:
            bound = self._bound = (generation, self._bind(channel))
        return bound


class _Unary(_Method):
    def __call__(self, request: Any, **options: Any) -> Any:
        """Send the request and return the answer; send it again if a fork has ended the call."""
        while True:
            end, generation = self._owner.renew, -1
            forks.gate.enter(end)
            try:
                generation, method = self._current()
                return method(request, **options)
            except (grpc.RpcError, ValueError):  # gRPC raises ValueError for a channel that is closed
                if self._owner.closed or generation == self._owner.generation:
                    raise
            finally:
                forks.gate.leave(end)


class _Streaming(_Method):
    def __call__(self, request: Any, **options: Any) -> "Stream":
        """Open a stream."""
        end = self._owner.renew
        forks.gate.enter(end)
        try:
            generation, method = self._current()
            return Stream(self._owner, generation, method(request, **options))
        finally:
            forks.gate.leave(end)


class Stream(Iterator[Any]):
    """The messages of a stream. Raises Renewed after a fork has ended it."""

    def __init__(self, owner: Channel, generation: int, messages: Any) -> None:
        self._owner = owner
        self._generation = generation
        self._messages = messages
        forks.follow(self)

    def __next__(self) -> Any:
        end = self._owner.renew
        forks.gate.enter(end)
        try:
            self._check()
            return next(self._messages)
        except grpc.RpcError:
            self._check()
            raise
        finally:
            forks.gate.leave(end)

    def cancel(self) -> None:
        """End the stream, unless a fork has done so."""
        if self._generation == self._owner.generation:
            self._messages.cancel()

    def _check(self) -> None:
        if self._generation != self._owner.generation:
            raise Renewed

    def after_fork(self) -> None:
        """Leave the parent's stream alone."""
        forks.keep(self._messages)
