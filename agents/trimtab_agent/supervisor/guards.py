"""The limits that end a trial of a live system. Standard library only."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Source(Protocol):
    """Where readings come from (readings.Readings)."""

    def latest(self, name: str) -> tuple[float, float] | None:
        """Return the time and the value of a reading; None if it is missing."""

    def overdue(self, name: str) -> float:
        """Return for how many seconds a reading is missing."""

    def fault(self, name: str) -> str:
        """Return why a reading is missing."""


@dataclass(frozen=True)
class Broken:
    """A broken guard. `value` is None if its reading is missing."""

    guard: str
    metric: str
    value: float | None
    limit: float
    seconds: float
    text: str


class Guards:
    """The guards of a trial. Their limits may depend on the readings under the settings before it."""

    def __init__(self, specs: Sequence[Mapping[str, Any]]) -> None:
        """`specs` have the fields of `trimtab_components.live.Guard`."""
        self._specs = specs
        self._control: dict[str, float] = {}
        # The time of the first reading of an unbroken row of readings beyond the limit.
        self._since: dict[str, float] = {}

    def set_control(self, readings: Mapping[str, Sequence[float]]) -> None:
        """From now on, compare with the medians of these readings, by metric."""
        self._control = {name: statistics.median(values) for name, values in readings.items() if values}
        self._since.clear()

    def reset(self) -> None:
        """Forget for how long guards have been beyond their limits."""
        self._since.clear()

    @property
    def is_absolute(self) -> bool:
        """True if a guard needs no control."""
        return any(not spec["of_control"] for spec in self._specs)

    def look(self, source: Source, *, control: Source | None = None, relative: bool = True) -> Broken | None:
        """Return the first guard that is broken now.

        Guards of the control compare with the readings of `control` at the same time, or, without it, with the medians
        that `set_control` has got. With `relative` False they do not hold.
        """
        for spec in self._specs:
            name, metric = spec["name"], spec["metric"]
            if spec["of_control"] and not relative:
                continue
            compared = self._compared(metric, control) if spec["of_control"] else 1.0
            if compared is None:
                away = 0.0 if control is None else control.overdue(metric)
                if away <= 0 or control is None:
                    continue  # there is no control yet
                text = f"guard {name}: {metric} of the control has no reading: {control.fault(metric)}"
                return Broken(name, metric, None, float(spec["limit"]), away, text)
            limit = float(spec["limit"]) * compared
            reading = source.latest(metric)
            if reading is None:
                away = source.overdue(metric)
                if away <= 0:
                    continue  # the first reading is not there yet
                text = f"guard {name}: {metric} has no reading: {source.fault(metric)}"
                return Broken(name, metric, None, limit, away, text)
            at, value = reading
            if value <= limit if spec["above"] else value >= limit:
                self._since.pop(name, None)
                continue
            seconds = at - self._since.setdefault(name, at)
            if seconds >= spec["seconds"]:
                word = "above" if spec["above"] else "below"
                text = f"guard {name}: {metric} was {value:.6g}, {word} {limit:.6g}, for {seconds:.1f} s"
                return Broken(name, metric, value, limit, seconds, text)
        return None

    def now(self, source: Source, *, control: Source | None = None, relative: bool = True) -> list[dict[str, Any]]:
        """Return the reading of each guard with its limit, for people; the arguments are those of `look`.

        `limit` and `value` are None if they are not known, and `limit` also if the guard does not hold. `beyond`: the
        seconds for which the readings have been beyond the limit.
        """
        found = []
        for spec in self._specs:
            name, metric = spec["name"], spec["metric"]
            compared = self._compared(metric, control) if spec["of_control"] else 1.0
            holds = compared is not None and (relative or not spec["of_control"])
            reading, since = source.latest(metric), self._since.get(name)
            found.append(
                {
                    "name": name,
                    "metric": metric,
                    "above": bool(spec["above"]),
                    "limit": float(spec["limit"]) * compared if holds and compared is not None else None,
                    "value": None if reading is None else reading[1],
                    "seconds": float(spec["seconds"]),
                    "beyond": 0.0 if reading is None or since is None else reading[0] - since,
                }
            )
        return found

    def _compared(self, metric: str, control: Source | None) -> float | None:
        if control is None:
            return self._control.get(metric)
        latest = control.latest(metric)
        return None if latest is None else latest[1]
