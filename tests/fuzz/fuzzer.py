"""The fuzzer: it sends valid requests and mutations of them, one at a time, and keeps what every call has cost.

The same seed gives the same mutations, as far as the service gives the same names and numbers.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service._gen import tuning_pb2
from tests.factories.patience import PATIENCE, wait_for
from tests.fuzz.answers import Answer
from tests.fuzz.calls import Call
from tests.fuzz.meter import Cost, Meter
from tests.fuzz.mutations import mutate
from tests.fuzz.world import World, metrics_of

# What a single request may cost.
MOST_SECONDS, MOST_BYTES = 1.0, 50_000_000
# Processes that still work after so many seconds, on a request that nobody waits for, are restarted.
LEFT_SECONDS = 20.0
# What a process writes where something happened that nobody had thought of.
UNEXPECTED = re.compile(r"Traceback \(most recent|failed unexpectedly|raised unexpected")
# Errors of an operation that are the fault of the service.
_FAULTS = ("worker_lost", "algorithm_failed", "internal")
_UNFINISHED = ("PENDING", "RUNNING", "STALE", 1, 2, 3)
# Operations that read a study, after a mutation of it has succeeded.
_READING = (
    *("GET /studies/{name}/analysis", "GET /studies/{name}/best", "GET /studies/{name}/insight"),
    *("GET /studies/{name}/table", "GET /studies/{name}/trials.json", "GET /studies/{name}/trials.csv"),
    *("GET /studies/{name}", "GET /studies/{name}/file", "GET /studies/{name}/sample"),
    *("TuningService.GetStudy", "TuningService.GetBestTrials", "TuningService.ListTrials"),
)
_CREATING = ("POST /studies", "TuningService.CreateStudy")


@dataclass
class Row:
    """A call in the table. `valid` counts valid requests that have succeeded, `mutated` mutations that have."""

    name: str
    role: str
    requests: int = 0
    valid: int = 0
    mutated: int = 0
    seconds: float = 0.0
    bytes: int = 0
    costly: str = ""
    refused: str = "nothing was sent"

    def add(self, answer: Answer, cost: Cost, text: str, *, valid: bool) -> None:
        """Count a request."""
        self.requests += 1
        if answer.succeeded:
            self.valid += valid
            self.mutated += not valid
        elif valid:
            self.refused = f"{answer.status} {answer.problem}"
        if cost.seconds > self.seconds:
            self.seconds, self.costly = cost.seconds, text
        self.bytes = max(self.bytes, cost.bytes)


def missing(rows: Iterable[Row]) -> list[str]:
    """Return what to do about the calls of which no valid request has succeeded."""
    return [
        f"{row.name}: no valid request has succeeded (the last: {row.refused}). Write one into rest_requests.py or "
        "grpc_requests.py."
        for row in rows
        if not row.valid
    ]


@dataclass(frozen=True)
class Finding:
    """An answer that is not as it should be, or that costs too much."""

    call: str
    problem: str
    mutation: str
    request: str

    def __str__(self) -> str:
        return f"{self.call}: {self.problem} [{self.mutation[:300]}]"


class Logs:
    """The logs of a service: what unexpected errors they have got since the last look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[Path, int] = {}
        self.news()

    def news(self) -> str:
        """Return the unexpected errors since the last call, each with the lines that follow it."""
        found = []
        for path in sorted(self._folder.glob("*.log")):
            size, seen = path.stat().st_size, self._seen.get(path, 0)
            if size == seen:
                continue
            # A log that has become too long begins again.
            with path.open("rb") as log:
                log.seek(seen if size > seen else 0)
                lines = log.read().decode(errors="replace").splitlines()
            self._seen[path] = size
            for number, line in enumerate(lines):
                if UNEXPECTED.search(line):
                    found.append(f"{path.name}: " + "\n".join(lines[number : number + 60]))
                    break
        return "\n".join(found)


@dataclass
class Fuzzer:
    """The calls of a service, and what is known of them."""

    world: World
    calls: Sequence[Call]
    seed: int
    # The largest request in bytes, as far as the call allows it.
    most: int
    rows: dict[str, Row] = field(default_factory=dict)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    _operations: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = {call.name: Row(call.name, call.role or "nobody") for call in self.calls}
        self._by_name = {call.name: call for call in self.calls}
        self._meter = Meter(self.world.service)
        self._logs = Logs(self.world.service.data_dir / "logs")

    def run(self, mutations: int, *, until: Callable[[], bool]) -> None:
        """Send a valid request and some mutations of each call; again and again until the condition holds."""
        number = 0
        while number == 0 or not until():
            for call in self.calls:
                self.turn(call, mutations, number)
                if number > 0 and until():
                    return
            number += 1

    def turn(self, call: Call, mutations: int, number: int) -> None:
        """Send a valid request of a call, and mutations of others."""
        random_ = random.Random(f"{self.seed} {call.name} {number}")
        kit = call.kit(self.world.furniture.foreign, self.most)
        try:
            self.send(call, self._make(call), "as it is", valid=True)
            for _ in range(mutations):
                text, tree = mutate(random_, self._make(call), kit)
                answer = self.send(call, tree, text, random_)
                if answer.succeeded:
                    self._follow(call, tree, random_)
        except AssertionError as error:
            # The service may refuse what a request needs, by the rate of a tenant for example.
            self.rows[call.name].refused = f"there is no request: {error}"

    def send(
        self, call: Call, tree: Any, text: str, random_: random.Random | None = None, *, valid: bool = False
    ) -> Answer:
        """Send one request, count it, and note what is wrong with its answer or its cost."""
        measured = self._meter.measure(lambda: call.send(self.world, tree, random_))
        answer, cost = measured.answer, measured.cost
        if answer.status == "not sent":
            return answer
        if cost.seconds > MOST_SECONDS or cost.bytes > MOST_BYTES:
            # A module may have been imported, or the sweep was at work.
            again = self._meter.measure(lambda: call.send(self.world, tree))
            if again.answer.succeeded == answer.succeeded:
                cost = Cost(min(cost.seconds, again.cost.seconds), min(cost.bytes, again.cost.bytes))
        self.rows[call.name].add(answer, cost, text, valid=valid)
        problems = [answer.problem] if answer.problem else []
        if cost.seconds > MOST_SECONDS:
            problems.append(f"{cost.seconds:.1f} s of CPU")
        if cost.bytes > MOST_BYTES:
            problems.append(f"{cost.bytes / 1e6:.0f} MB of memory")
        if mishaps := self._logs.news():
            problems.append(mishaps)
        if answer.status == "late" and (restarted := self._meter.settle(LEFT_SECONDS)):
            problems.append(f"{restarted} went on for {LEFT_SECONDS:g} s after nobody waited")
        for problem in problems:
            self._note(call.name, problem, text, call.shown(tree))
        self._remember(answer.data)
        return answer

    def finish(self) -> None:
        """Wait until all operations have ended, and note those that do not or that end by a fault of the service."""

        def left() -> list[str]:
            return [one for one in list(self._operations) if not self._ended(one)]

        try:
            wait_for(lambda: not left())
        except AssertionError:
            for one in left():
                self._note("operations", f"not ended within {PATIENCE:g} s", one, one)
        if mishaps := self._logs.news():
            self._note("logs", mishaps, "", "")

    def table(self) -> str:
        """Return the table of calls as Markdown, the most costly first."""
        lines = ["| call | role | requests | valid | mutated | CPU s | MB | the most costly |", "|" + " --- |" * 8]
        for row in sorted(self.rows.values(), key=lambda one: (-one.seconds, -one.bytes)):
            costly = re.sub(r"[|\n`]", " ", row.costly)[:80]
            lines.append(
                f"| `{row.name}` | {row.role} | {row.requests} | {row.valid} | {row.mutated} | {row.seconds:.2f} "
                f"| {row.bytes / 1e6:.1f} | {costly} |"
            )
        return "\n".join(lines)

    def summary(self) -> str:
        """Return the numbers of all calls together."""
        rows = self.rows.values()
        return (
            f"{sum(row.valid > 0 for row in rows)} of {len(rows)} calls reached, {sum(row.requests for row in rows)} "
            f"requests, {sum(row.valid for row in rows)} valid and {sum(row.mutated for row in rows)} mutated ones "
            f"succeeded; at most {max(row.seconds for row in rows):.2f} s of CPU and "
            f"{max(row.bytes for row in rows) / 1e6:.1f} MB for one request; {len(self.findings)} findings"
        )

    def write(self, folder: Path) -> None:
        """Write table and findings into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = [self.summary(), "", self.table(), "", *missing(self.rows.values())]
        (folder / "calls.md").write_text("\n".join(lines) + "\n")
        found = [one.__dict__ for one in self.findings.values()]
        (folder / "findings.json").write_text(json.dumps(found, indent=1))

    def _make(self, call: Call) -> Any:
        """Return a new valid request. Mutations may have made objects useless that others share: then there are new."""
        try:
            return call.make(self.world)
        except AssertionError:
            self.world.renew()
            return call.make(self.world)

    def _follow(self, call: Call, tree: Any, random_: random.Random) -> None:
        """After a mutation that has succeeded, use what it has changed."""
        if call.name in _CREATING:
            name = tree.get("body", tree).get("name")
            if not isinstance(name, str):
                return
            self._use(name)
            self._read(name, _READING)
            self._send_if_known("DELETE /studies/{name}", {"path": {"name": name}})
        elif isinstance(tree, dict) and call.name not in _READING and "DELETE" not in call.name.upper():
            path = tree.get("path")
            name = path.get("name") if isinstance(path, dict) else tree.get("study")
            if isinstance(name, str):
                self._read(name, random_.sample(_READING, 3))

    def _use(self, name: str) -> None:
        """Ask a study for trials and tell results."""
        path = {"name": name}
        asked = self._send_if_known("POST /studies/{name}/suggestions", {"path": path, "body": {"count": 2}})
        trials = asked.data.get("trials", []) if asked is not None and isinstance(asked.data, dict) else []
        for trial, loss in zip(trials, (0.5, 1e300), strict=False):
            metrics = {**metrics_of("limits"), "loss": loss, "seconds": loss}
            place = {"name": name, "number": trial["number"]}
            self._send_if_known(
                "POST /studies/{name}/trials/{number}/complete", {"path": place, "body": {"metrics": metrics}}
            )

    def _read(self, name: str, calls: Iterable[str]) -> None:
        for one in calls:
            rest = {"path": {"name": name}}
            grpc = {"name": name} if one.endswith("GetStudy") else {"study": name}
            self._send_if_known(one, grpc if one.startswith("Tuning") else rest)

    def _send_if_known(self, name: str, tree: Any) -> Answer | None:
        call = self._by_name.get(name)
        return None if call is None else self.send(call, tree, "after a mutation")

    def _remember(self, data: Any) -> None:
        """Keep the id of an operation that is being computed."""
        found, state = "", None
        if isinstance(data, tuning_pb2.Operation):
            found, state = data.id, data.state
        elif isinstance(data, dict) and {"id", "state", "exhausted"} <= data.keys():
            found, state = data["id"], data["state"]
        if found and state in _UNFINISHED:
            self._operations.setdefault(found, time.monotonic())

    def _ended(self, operation: str) -> bool:
        """Return whether an operation has ended. Note an end by a fault of the service."""
        try:
            found = self.world.rest("GET", f"/operations/{operation}")
        except AssertionError:  # its study was deleted
            found = {"state": "FAILED", "error_code": "operation_not_found"}
        if found["state"] in _UNFINISHED:
            return False
        if found["error_code"] in _FAULTS:
            self._note("operations", f"{found['error_code']}: {found['error_message']}", operation, operation)
        del self._operations[operation]
        return True

    def _note(self, call: str, problem: str, mutation: str, request: str) -> None:
        """Keep one finding of each kind, without the numbers and names of single requests."""
        kind = re.sub(r"[0-9a-f-]{8,}|\d+", "#", problem)[-120:]
        self.findings.setdefault((call, kind), Finding(call, problem, mutation, request[:20_000]))
