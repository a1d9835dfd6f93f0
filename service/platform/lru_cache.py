"""A bounded memory of values that a process need not compute or read again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """At most `most` values by key. The one that was used longest ago is forgotten first.

    Several threads may use it at once. A value that threads must not share is taken out with `pop` and brought back
    with `put`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """Return the value of this key, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: Key, value: Value) -> None:
        """Remember a value in place of the one that the key had."""
        with self._lock:
            self._put(key, value)

    def get_or_put(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of this key. If there is none, remember and return what `make` returns.

        `make` is called under the lock, so it must be quick and must not use this memory.
        """
        with self._lock:
            value = self._values[key] if key in self._values else make()
            self._put(key, value)
            return value

    def pop(self, key: Key) -> Value | None:
        """Forget the value of this key and return it, or None."""
        with self._lock:
            return self._values.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()

    def _put(self, key: Key, value: Value) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)
