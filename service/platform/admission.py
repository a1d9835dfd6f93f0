"""Counts of what is in progress, by caller and by group of callers, with a bound for each.

With these bounds, no caller and no tenant can use up what the others need. docs/reference/limits.md lists them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

# Returns the error of a caller with too many: what, who has them, and how many are allowed.
Refusal = Callable[[str, str, int], Exception]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many calls (or streams: `what`) a caller, its group and the process may have in progress."""

    what: str
    caller: int
    group: int
    process: int


@dataclass(slots=True)
class Caller:
    """A caller with something in progress, and how much."""

    key: Hashable
    group: Hashable
    count: int = 0


class Admission:
    """The counts of this process. They are for one thread: an event loop's."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self._callers: dict[Hashable, Caller] = {}
        self._groups: Counter[Hashable] = Counter()
        self._total = 0

    def enter(self, key: Hashable, group: Hashable, bounds: Bounds) -> Caller:
        """Count one more of a caller; `leave` must follow. Raises the refusal if a bound is reached."""
        self.check(key, group, bounds)
        caller = self._callers.get(key)
        if caller is None:
            caller = self._callers[key] = Caller(key, group)
        caller.count += 1
        self._groups[group] += 1
        self._total += 1
        return caller

    def check(self, key: Hashable, group: Hashable, bounds: Bounds) -> None:
        """Raise as `enter` would."""
        caller = self._callers.get(key)
        if caller is not None and caller.count >= bounds.caller:
            raise self._refusal(bounds.what, "This caller", bounds.caller)
        if self._groups.get(group, 0) >= bounds.group:
            raise self._refusal(bounds.what, "This tenant" if group else "All callers without a token", bounds.group)
        if self._total >= bounds.process:
            raise self._refusal(bounds.what, "This process of the service", bounds.process)

    def leave(self, caller: Caller) -> None:
        """Count the end of one."""
        caller.count -= 1
        if not caller.count:
            del self._callers[caller.key]
        self._groups[caller.group] -= 1
        if not self._groups[caller.group]:
            del self._groups[caller.group]
        self._total -= 1
