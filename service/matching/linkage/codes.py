"""Dictionary encoding: small integers in place of values that many records share."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

UNKNOWN = -1


class Codes(Generic[T]):
    """Distinct values in the order of their first use; the code of a value is its place."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._codes: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def find(self, value: T) -> int:
        """Return the code of a value, or UNKNOWN."""
        return self._codes.get(value, UNKNOWN)

    def add(self, value: T) -> int:
        """Return the code of a value, which is new if the value is."""
        code = self._codes.setdefault(value, len(self.values))
        if code == len(self.values):
            self.values.append(value)
            self._added(value)
        return code

    def _added(self, value: T) -> None:
        """Store what a subclass keeps of the new last value."""
