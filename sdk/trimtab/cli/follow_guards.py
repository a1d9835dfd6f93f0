"""The guards of `trimtab follow`: limits of metrics, read once a second by threads of their own."""

import json
import math
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimtab.errors import InvalidInput

READING_SECONDS = 1.0
# A reading that is older is missing, and a command that takes longer is killed.
LONGEST_AGE = 5.0
METRIC_KEYS = ("command", "file", "path")
GUARD_KEYS = ("metric", "above", "below", "for")


@dataclass(frozen=True)
class Metric:
    """A number that a command prints, or a file contains, as JSON at a dotted path."""

    name: str
    command: tuple[str, ...] = ()
    file: str = ""
    path: str = ""


@dataclass(frozen=True)
class Guard:
    """A limit. It is broken if the metric has been beyond it for so many seconds, or has no reading."""

    name: str
    metric: str
    limit: float
    above: bool
    seconds: float = 1.0


class Guards:
    """Reads metrics until `close`, and says which guard is broken."""

    def __init__(self, metrics: Mapping[str, Metric], guards: Mapping[str, Guard]) -> None:
        self._guards = tuple(guards.values())
        self._latest: dict[str, tuple[float, float]] = {}
        self._faults: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._closed = threading.Event()
        self._began = time.monotonic()
        for metric in metrics.values():
            threading.Thread(target=self._read_on, args=(metric,), daemon=True).start()

    def look(self) -> str:
        """Return the first broken guard in words; "" if there is none."""
        now = time.monotonic()
        for guard in self._guards:
            at, value = self._latest.get(guard.metric, (self._began, math.nan))
            if now - at > LONGEST_AGE:
                why = self._faults.get(guard.metric, "no answer")
                return f"guard {guard.name}: {guard.metric} has no reading: {why}"
            if math.isnan(value) or (value <= guard.limit if guard.above else value >= guard.limit):
                self._since.pop(guard.name, None)
                continue
            seconds = at - self._since.setdefault(guard.name, at)
            if seconds >= guard.seconds:
                word = "above" if guard.above else "below"
                limit = f"{word} {guard.limit:.6g}, for {seconds:.1f} s"
                return f"guard {guard.name}: {guard.metric} was {value:.6g}, {limit}"
        return ""

    def reset(self) -> None:
        """Forget for how long guards have been beyond their limits: other settings are in force now."""
        self._since.clear()

    def close(self) -> None:
        """Take no further readings."""
        self._closed.set()

    def _read_on(self, metric: Metric) -> None:
        while not self._closed.is_set():
            began = time.monotonic()
            try:
                self._latest[metric.name] = began, _number(metric)
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                self._faults[metric.name] = str(error)
            self._closed.wait(max(0.0, began + READING_SECONDS - time.monotonic()))


def read_guards(path: Path) -> Guards:
    """Start the guards that a JSON file describes.

    Raises:
        InvalidInput: the file cannot be read, or describes none. The message names the key.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput.of("guards", str(path), f"a readable JSON file ({error})") from None
    if not isinstance(content, dict) or set(content) - {"metrics", "guards"}:
        raise InvalidInput.of("guards", str(path), "an object with the keys metrics and guards")
    metrics = {name: _metric(name, one) for name, one in _objects(content, "metrics")}
    guards = {name: _guard(name, one, metrics) for name, one in _objects(content, "guards")}
    return Guards(metrics, guards)


def _objects(content: Mapping[str, Any], key: str) -> list[tuple[str, Mapping[str, Any]]]:
    found = content.get(key)
    if not isinstance(found, dict) or not found:
        raise InvalidInput.of(f"guards.{key}", found, "an object with at least one name")
    for name, one in found.items():
        if not isinstance(one, dict):
            raise InvalidInput.of(f"guards.{key}.{name}", one, "an object")
    return list(found.items())


def _metric(name: str, one: Mapping[str, Any]) -> Metric:
    where = f"guards.metrics.{name}"
    _expect_keys(where, one, METRIC_KEYS)
    if ("command" in one) == ("file" in one):
        raise InvalidInput.of(where, dict(one), "a metric with either a command or a file")
    command = one.get("command", ())
    if isinstance(command, str):
        command = shlex.split(command)
    if not isinstance(command, list | tuple) or not all(isinstance(word, str) for word in command):
        raise InvalidInput.of(f"{where}.command", command, "a list of words")
    texts = {key: one.get(key, "") for key in ("file", "path")}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise InvalidInput.of(f"{where}.{key}", text, "a text")
    return Metric(name, tuple(command), **texts)


def _guard(name: str, one: Mapping[str, Any], metrics: Mapping[str, Metric]) -> Guard:
    where = f"guards.guards.{name}"
    _expect_keys(where, one, GUARD_KEYS)
    if one.get("metric") not in metrics:
        raise InvalidInput.of(f"{where}.metric", one.get("metric"), f"one of {', '.join(metrics)}")
    limits = [key for key in ("above", "below") if key in one]
    if len(limits) != 1:
        raise InvalidInput.of(where, dict(one), "a guard with either above or below")
    for key in (*limits, "for"):
        value = one.get(key, 1.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InvalidInput.of(f"{where}.{key}", value, "a number")
    if one.get("for", 1.0) < 0:
        raise InvalidInput.of(f"{where}.for", one["for"], "a number of seconds from 0")
    return Guard(name, one["metric"], float(one[limits[0]]), limits[0] == "above", float(one.get("for", 1.0)))


def _expect_keys(where: str, one: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in one:
        if key not in known:
            raise InvalidInput.of(f"{where}.{key}", one[key], f"only the keys {', '.join(known)}")


def _number(metric: Metric) -> float:
    """Read a metric.

    Raises:
        OSError, ValueError, subprocess.SubprocessError: there is no number.
    """
    if metric.file:
        text = Path(metric.file).read_text(encoding="utf-8")
    else:
        with subprocess.Popen(
            metric.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                text = process.communicate(timeout=LONGEST_AGE)[0]
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    process.kill()
                raise
        if process.returncode:
            raise ValueError(f"{metric.command[0]} ended with code {process.returncode}")
    found = json.loads(text)
    for key in filter(None, metric.path.split(".")):
        if not isinstance(found, dict) or key not in found:
            raise ValueError(f"there is no {key!r} in the path {metric.path!r}")
        found = found[key]
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise ValueError(f"{found!r} is not a number")
    return float(found)
