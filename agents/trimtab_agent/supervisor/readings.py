"""Read the metrics of a live system, each in a thread of its own, so that one that hangs delays nothing.

Metrics of one command that are read equally often share its output. Standard library only.
"""

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab_agent.metrics.extract import NoValueError, number
from trimtab_agent.supervisor.switch import LARGEST_ANSWER, kill
from trimtab_components.live import MEMORY_USED

# Seconds without a reading after which it is missing, at least, and as a multiple of the time between two readings.
LEAST_AGE, AGE = 5.0, 2.5


class Readings:
    """The latest readings by name. They are taken until `close`."""

    def __init__(
        self, specs: Sequence[Mapping[str, Any]], folder: str, env: Mapping[str, str], prometheus: Mapping[str, str]
    ) -> None:
        """`specs` have the fields of `trimtab_components.live.Reading`, with rendered texts."""
        self._latest: dict[str, tuple[float, float]] = {}
        self._faults: dict[str, str] = {}
        self._closed = threading.Event()
        self._folder, self._env, self._prometheus = folder, env, prometheus
        self._ages: dict[str, float] = {spec["name"]: max(LEAST_AGE, AGE * spec["every"]) for spec in specs}
        self._ages[MEMORY_USED] = LEAST_AGE
        memory = {"name": MEMORY_USED, "kind": "memory", "every": 1.0, "counter": False}
        self.began = time.monotonic()
        groups: dict[object, list[Mapping[str, Any]]] = {}
        for spec in (*specs, memory):
            alone = spec["kind"] != "command"
            groups.setdefault(spec["name"] if alone else (*spec["command"], spec["every"]), []).append(spec)
        for group in groups.values():
            threading.Thread(target=self._take, args=(group,), daemon=True).start()

    def latest(self, name: str) -> tuple[float, float] | None:
        """Return the time (monotonic) and the value of a reading; None if it is missing."""
        found = self._latest.get(name)
        return None if found is None or time.monotonic() - found[0] > self._ages[name] else found

    def overdue(self, name: str) -> float:
        """Return for how many seconds a reading is longer away than it may be; 0 if it is not."""
        at, _ = self._latest.get(name, (self.began, 0.0))
        return max(0.0, time.monotonic() - at - self._ages[name])

    def fault(self, name: str) -> str:
        """Return why the last attempt gave no number."""
        return self._faults.get(name, "it has not answered")

    def close(self) -> None:
        """Take no further readings."""
        self._closed.set()

    def _take(self, group: Sequence[Mapping[str, Any]]) -> None:
        before: dict[str, tuple[float, float]] = {}
        while not self._closed.is_set():
            began, first = time.monotonic(), group[0]
            try:
                text = self._run(first["command"]) if first["kind"] == "command" else ""
            except (NoValueError, OSError, subprocess.SubprocessError) as error:
                self._faults.update({spec["name"]: str(error) for spec in group})
            else:
                for spec in group:
                    self._note(spec, began, text, before)
            self._closed.wait(max(0.0, began + first["every"] - time.monotonic()))

    def _note(self, spec: Mapping[str, Any], began: float, text: str, before: dict[str, tuple[float, float]]) -> None:
        """Note a reading that was begun at a time. `before` has the last values of counters."""
        name = spec["name"]
        try:
            value = self._read(spec, text)
        except (NoValueError, OSError, ValueError) as error:
            self._faults[name] = str(error)
            return
        self._faults.pop(name, None)
        last = before.get(name)
        if not spec["counter"]:
            self._latest[name] = (began, value)
        elif last is not None and value >= last[1] and began > last[0]:
            self._latest[name] = (began, (value - last[1]) / (began - last[0]))
        before[name] = (began, value)

    def _read(self, spec: Mapping[str, Any], text: str) -> float:
        """Return the number of a reading. `text` is the output of its command."""
        if spec["kind"] == "memory":
            return memory_used()
        if spec["kind"] == "prometheus":
            from trimtab_agent.metrics import prometheus

            now = time.time()
            metric = {**spec, "delay": 0.0, "timeout": LEAST_AGE}
            try:
                return prometheus.by_query(metric, self._prometheus, now - spec["every"], now)
            except prometheus.QueryError as error:
                raise NoValueError(str(error)) from None
        if spec["kind"] == "file":
            with open(spec["file"], "rb") as file:
                text = file.read(LARGEST_ANSWER).decode("utf-8", "replace")
        return _at(text, spec)

    def _run(self, argv: Sequence[str]) -> str:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            env=dict(self._env),
            start_new_session=True,
            text=True,
            errors="replace",
        )
        try:
            output = process.communicate(timeout=LEAST_AGE)[0]
        except subprocess.TimeoutExpired:
            kill(process)
            raise NoValueError(f"{argv[0]} has not ended within {LEAST_AGE:g} s") from None
        if process.returncode:
            raise NoValueError(f"{argv[0]} ended with exit code {process.returncode}")
        return output[:LARGEST_ANSWER]


def memory_used() -> float:
    """Return the part of the machine's memory that is in use."""
    with open("/proc/meminfo", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    total, available = (float(lines[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return 1 - available / total


def _at(text: str, spec: Mapping[str, Any]) -> float:
    from trimtab_agent.metrics.extract import by_json

    if not spec["path"] and spec["kind"] != "prometheus":
        return number(text.strip(), spec)
    return by_json(text, {**spec, "source": spec["file"] or "its output"})
