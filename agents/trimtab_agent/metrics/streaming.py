"""Read measurements during the run, from lines of the application's output or of a file."""

import json
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from trimtab_agent.files import open_regular
from trimtab_agent.metrics.extract import LARGEST
from trimtab_agent.signals import HaltedError, Signals
from trimtab_components import quantities

# Maximum bytes of a line, and seconds for the lines of one pass: a bad pattern can take very long.
LINE_LIMIT = 64 << 10
PARSING_TIME = 2.0
# Bytes read from a file in one pass.
PIECE = 1 << 20
STEP = "step"


class Streams:
    """Reads an application's measurements and appends them to a file, as one JSON object per line.

    Each object has `step`, `metrics`, `elapsed` (seconds since the application's start) and `run` (the number of this
    run of the trial). Steps with more than two digits are kept only if the digits after the second are zeros (990,
    1000, 1100): that is enough for a curve, and the kept steps are the same in every trial.
    """

    def __init__(
        self,
        streams: Sequence[Mapping[str, Any]],
        path: str,
        work: str,
        signals: Signals,
        elapsed: Callable[[], float],
        complain: Callable[[str], None],
        run: int = 0,
        owner: int | None = None,
        units: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            streams: each has a `source` (stdout, stderr or a file in `work`) and a `pattern`. The named groups of the
                pattern are the metrics. With an empty pattern the lines are JSON objects.
            path: the file to write; an existing file is replaced.
            work: the trial's work folder.
            signals: the signals of this process.
            elapsed: returns the seconds since the application's start.
            complain: called with a text for people about lines that could not be read.
            run: the number of the run; 0 if unknown.
            owner: the owner that a file in `work` must have; None: any.
            units: the units of metrics by name; others are in seconds, bytes, or as the lines have them.
        """
        self._units = units or {}
        self._signals = signals
        self._elapsed = elapsed
        self._complain = complain
        self._run = run
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._told: set[int] = set()
        self._lines = 0
        self.sources = {str(stream["source"]): Source(self) for stream in streams}
        for stream in streams:
            rule = re.compile(stream["pattern"].encode()) if stream["pattern"] else None
            self.sources[stream["source"]].rules.append(rule)
        self._files = [
            _Followed(os.path.join(work, name), source, owner)
            for name, source in self.sources.items()
            if name not in ("stdout", "stderr")
        ]

    def look(self) -> None:
        """Read new lines of the files."""
        for followed in self._files:
            followed.read()

    def close(self) -> None:
        """Read the rest and close the output file."""
        self.look()
        for source in self.sources.values():
            source.add(b"\n")
        os.close(self._file)

    def take(self, lines: Sequence[bytes], rules: "list[re.Pattern[bytes] | None]") -> None:
        """Store the measurements in lines."""
        try:
            self._signals.interrupts = True
            signal.setitimer(signal.ITIMER_REAL, PARSING_TIME)
            try:
                found = [one for line in lines for rule in rules if (one := _metrics(line, rule, self._units))]
            finally:
                self._signals.interrupts = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        except HaltedError:
            rules.clear()
            if not self._signals.stopped:
                self._complain(f"reading lines took {PARSING_TIME:g} s, so no more are read; simplify the pattern")
            return
        for metrics in found:
            self._lines += 1
            step = metrics.pop(STEP, self._lines)
            if metrics and step >= 0 and step == int(step) and is_kept(int(step)) and step not in self._told:
                self._told.add(int(step))
                data = {"step": int(step), "metrics": metrics, "elapsed": self._elapsed(), "run": self._run}
                with suppress(OSError):  # on a full disk the trial continues without measurements
                    os.write(self._file, json.dumps(data).encode() + b"\n")


class Source:
    """Splits the bytes of one source into lines."""

    def __init__(self, streams: Streams) -> None:
        self.rules: list[re.Pattern[bytes] | None] = []
        self._streams = streams
        self._rest = b""

    def add(self, data: bytes) -> None:
        """Process the next bytes."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = self._rest + lines[0]
            self._rest = b""
            if self.rules:
                self._streams.take([line for line in lines if line], self.rules)
        self._rest = (self._rest + rest)[:LINE_LIMIT]


class _Followed:
    def __init__(self, path: str, source: Source, owner: int | None) -> None:
        self._path = path
        self._owner = owner
        self._source = source
        self._offset = 0

    def read(self) -> None:
        with suppress(OSError), open_regular(self._path, self._owner) as file:
            if os.fstat(file.fileno()).st_size < self._offset:
                self._offset = 0  # the file was replaced
            file.seek(self._offset)
            while data := file.read(PIECE):
                self._offset += len(data)
                self._source.add(data)


def is_kept(step: int) -> bool:
    """Return whether a step is reported."""
    distance: int = 10 ** max(0, len(str(step)) - 2)
    return step % distance == 0


def _metrics(line: bytes, rule: "re.Pattern[bytes] | None", units: Mapping[str, str]) -> dict[str, float]:
    """Return the numbers of a line by name that the service takes; empty if it has none."""
    found: Mapping[str, Any]
    if rule is None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):  # no JSON, or nested too deeply
            return {}
        if not isinstance(found, dict):
            return {}
    else:
        match = rule.search(line)
        found = match.groupdict() if match else {}
    metrics = {}
    for name, value in found.items():
        if isinstance(value, bytes | str | int | float) and not isinstance(value, bool):
            with suppress(ValueError, OverflowError):
                text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                number = quantities.parse(text, units.get(name, "")) if isinstance(text, str) else float(text)
                if abs(number) <= LARGEST:
                    metrics[name] = number
    return metrics
