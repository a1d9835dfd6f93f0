"""Measurements that an application tells while it runs: by lines of its output, or of a file that is followed."""

import json
import math
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from trimtab_agent.supervisor.process import HaltedError, Signals

# bytes of a line that are looked at; seconds that the lines of one look may take: a bad pattern can take for ever
LINE_LIMIT = 64 << 10
PARSING_TIME = 2.0
# bytes read of a file in one look
PIECE = 1 << 20
STEP = "step"


class Streams:
    """Reads an application's measurements and appends them to a file, one JSON object in each line: `step`, `metrics`,
    `elapsed`, seconds since the application's start, and `run`, the number of this run of the trial.

    Of steps with many digits only those are kept that end in zeros after the first two (990, 1000, 1100): as many as
    anybody looks at, and the same ones in every trial.
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
    ) -> None:
        """
        Args:
            streams: each with `source` (stdout, stderr or a file in `work`) and `pattern`, whose named groups are the
                metrics; empty: lines are JSON objects.
            path: the file that is written, anew.
            work: the trial's work folder.
            signals: those of this process.
            elapsed: gives the seconds since the application's start.
            complain: is told, for people, what was not understood.
            run: see above; 0: not known.
        """
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
            _Followed(os.path.join(work, name), source)
            for name, source in self.sources.items()
            if name not in ("stdout", "stderr")
        ]

    def look(self) -> None:
        """Reads what files have gained."""
        for followed in self._files:
            followed.read()

    def close(self) -> None:
        """Reads what is left."""
        self.look()
        for source in self.sources.values():
            source.add(b"\n")
        os.close(self._file)

    def take(self, lines: Sequence[bytes], rules: "list[re.Pattern[bytes] | None]") -> None:
        """Keeps what lines tell."""
        try:
            self._signals.interrupts = True
            signal.setitimer(signal.ITIMER_REAL, PARSING_TIME)
            try:
                found = [one for line in lines for rule in rules if (one := _metrics(line, rule))]
            finally:
                self._signals.interrupts = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        except HaltedError:
            rules.clear()
            if not self._signals.stopped:
                self._complain(f"reading lines took {PARSING_TIME:g} s, and no more are read; is a pattern costly?")
            return
        for metrics in found:
            self._lines += 1
            step = metrics.pop(STEP, self._lines)
            if metrics and step >= 0 and step == int(step) and is_kept(int(step)) and step not in self._told:
                self._told.add(int(step))
                data = {"step": int(step), "metrics": metrics, "elapsed": self._elapsed(), "run": self._run}
                with suppress(OSError):  # a full disk: the trial goes on without
                    os.write(self._file, json.dumps(data).encode() + b"\n")


class Source:
    """Takes the bytes of one source as they come."""

    def __init__(self, streams: Streams) -> None:
        self.rules: list[re.Pattern[bytes] | None] = []
        self._streams = streams
        self._rest = b""

    def add(self, data: bytes) -> None:
        """Takes the next bytes."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = self._rest + lines[0]
            self._rest = b""
            if self.rules:
                self._streams.take([line for line in lines if line], self.rules)
        self._rest = (self._rest + rest)[:LINE_LIMIT]


class _Followed:
    def __init__(self, path: str, source: Source) -> None:
        self._path = path
        self._source = source
        self._offset = 0

    def read(self) -> None:
        with suppress(OSError), open(self._path, "rb") as file:
            if os.fstat(file.fileno()).st_size < self._offset:
                self._offset = 0  # written anew
            file.seek(self._offset)
            while data := file.read(PIECE):
                self._offset += len(data)
                self._source.add(data)


def is_kept(step: int) -> bool:
    """Whether a step is among those that are reported."""
    distance: int = 10 ** max(0, len(str(step)) - 2)
    return step % distance == 0


def _metrics(line: bytes, rule: "re.Pattern[bytes] | None") -> dict[str, float]:
    """The finite numbers of a line by name; empty where it tells none."""
    found: Mapping[str, Any]
    if rule is None:
        try:
            found = json.loads(line)
        except ValueError:
            return {}
        if not isinstance(found, dict):
            return {}
    else:
        match = rule.search(line)
        found = match.groupdict() if match else {}
    metrics = {}
    for name, value in found.items():
        if isinstance(value, bytes | int | float) and not isinstance(value, bool):
            with suppress(ValueError, OverflowError):
                number = float(value)
                if math.isfinite(number):
                    metrics[name] = number
    return metrics
