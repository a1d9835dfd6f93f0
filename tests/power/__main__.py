"""Make small mistakes in the code and count those that a test finds (`make mutants`).

The lines are drawn by a seed from the lines of PARTS that the last `make coverage` has covered; a file that has changed
since then is left out. A line keeps its place in the draw when other lines change. Each mutant runs in a copy of the
tree, against the tests that cover its line: the cheapest first, until one fails. .cache/mutants/results.jsonl has one
line for each mutant. A mutant that is there does not run again, so that a run can be continued.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverage import CoverageData

from tests.power.changes import Change, assigned, changes
from tests.power.contexts import FIXTURE
from tests.power.measure import LINES, ROOT, TESTS, changed, part, sources

PARTS = (
    "service/core",
    "service/policies",
    "service/tuner",
    "service/trials",
    "service/studies",
    "service/fleet",
    "service/results",
    "service/planning",
    "service/matching",
    "service/tenancy",
    "sdk/trimtab",
    "agents/trimtab_agent",
    "agents/trimtab_components",
)
FOLDER = ROOT / ".cache" / "mutants"
TREE = FOLDER / "tree"
RESULTS = FOLDER / "results.jsonl"
# What is not tracked, and needed by tests.
BUILT = (
    ".venv",
    "web/node_modules",
    "web/dist",
    "docs/_site",
    "service/_gen",
    "sdk/trimtab/_gen",
    "agents/trimtab_agent/_gen",
)
# The tests of the first attempt take this time. Most mutants are found by it, and to import more test files costs time.
FIRST_SECONDS = 10.0
# The time to import one more test file.
FILE_SECONDS = 0.5
# A mutant is timed out after this time, and a multiple of the time that its tests took without it.
PATIENCE_SECONDS = 120.0
PATIENCE_FACTOR = 5.0


@dataclass(frozen=True)
class Mutant:
    """A change of one file, with the tests that may find it."""

    path: str
    change: Change
    tests: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return a text that identifies the change in the present text of the file."""
        one = self.change
        return f"{self.path}:{one.line}:{one.start}:{one.operator}:{one.before}:{one.after}"


class Measurement:
    """The last `make coverage`: which test runs which line, and how long each takes."""

    def __init__(self, unusable: Iterable[str] = ()) -> None:
        known = json.loads(TESTS.read_text())
        self.fixtures: dict[str, float] = known["fixtures"]
        self.tests: dict[str, dict[str, Any]] = {
            name: test for name, test in known["tests"].items() if test["passed"] and name not in set(unusable)
        }
        self.files: set[str] = set(known["files"])
        self._lines = CoverageData(str(LINES))
        self._lines.read()
        # The tests that request a shared fixture.
        self._users: dict[str, set[str]] = defaultdict(set)
        for name, test in self.tests.items():
            for fixture in test["fixtures"]:
                self._users[FIXTURE + fixture].add(name)

    def covered(self, path: str) -> dict[int, set[str]]:
        """Return the contexts of each covered line of a file."""
        found = self._lines.contexts_by_lineno(str(ROOT / path))
        return {line: set(contexts) for line, contexts in found.items()}

    def users(self, contexts: Iterable[str]) -> set[str]:
        """Return the tests of these contexts."""
        return {
            test
            for context in contexts
            for test in ({context} if context in self.tests else self._users.get(context, set()))
        }

    def ordered(self, tests: Iterable[str], path: str) -> list[str]:
        """Return tests in the order in which they run.

        Tests that need no server come first, then those in a file or folder that is named as the source file; of
        several cases of one function the cheapest comes before the second of another; then the cheapest.
        """
        stem = Path(path).stem
        folder = Path(path).parent.name

        def far(name: str) -> int:
            file = Path(name.partition("::")[0])
            return 0 if stem.strip("_") in file.stem else 1 if folder in file.parts else 2

        seen: Counter[str] = Counter()
        ranks = {}
        for name in sorted(tests, key=lambda name: (self.tests[name]["seconds"], name)):
            function = name.partition("[")[0]
            needs = sum(self.fixtures[fixture] for fixture in self.tests[name]["fixtures"])
            ranks[name] = (round(needs), far(name), seen[function], self.tests[name]["seconds"], name)
            seen[function] += 1
        return sorted(ranks, key=lambda name: ranks[name])

    def within(self, tests: Sequence[str], seconds: float) -> int:
        """Return how many of the tests, in this order, take at most this time, but at least one."""
        return max(1, sum(spent <= seconds for spent in self.spent(tests)))

    def spent(self, tests: Sequence[str]) -> Iterator[float]:
        """Yield the time from the start to the end of each test, in seconds."""
        spent = 0.0
        ready: set[str] = set()
        for name in tests:
            new = {name.partition("::")[0], *self.tests[name]["fixtures"]} - ready
            spent += self.tests[name]["seconds"] + sum(self.fixtures.get(one, FILE_SECONDS) for one in new)
            ready |= new
            yield spent


def main(arguments: Sequence[str]) -> int:
    """Draw, run and report. Return 0."""
    parser = argparse.ArgumentParser(prog="make mutants ARGS=...", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="number of mutants (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default: 1)")
    parser.add_argument("--seconds", type=float, default=120.0, help="longest time of a mutant's tests (default: 120)")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no further mutant after this time")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--again", action="store_true", help="run the survivors again, for instance with new tests")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    # SIGTERM ends the tests of the present mutant, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lock = (FOLDER / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    end = time.monotonic() + 60 * options.minutes
    unusable: set[str] = set()
    while True:
        measurement = Measurement(unusable)
        mutants = draw(measurement, options.count, options.seed)
        if options.list:
            for mutant in mutants:
                print(f"{mutant.key} ({len(mutant.tests)} tests)")
            return 0
        copy_tree()
        results = known_results()
        if options.again:
            results = {key: result for key, result in results.items() if result["result"] != "survived"}
            options.again = False
        for mutant in mutants:
            if mutant.key not in results and time.monotonic() < end:
                results[mutant.key] = run(mutant, measurement, options.seconds)
                write_results(results)
                show(results[mutant.key])
        drawn = {mutant.key: results[mutant.key] for mutant in mutants if mutant.key in results}
        failing = failing_without_mutant(drawn.values())
        if not failing:
            break
        print(f"These tests also fail in the copy without a mutant, so they run no more: {sorted(failing)}")
        unusable |= failing
        write_results({key: result for key, result in results.items() if result["found_by"] not in failing})
    summarise(drawn.values(), len(mutants))
    return 0


def draw(measurement: Measurement, count: int, seed: int) -> list[Mutant]:
    """Return the mutants that the seed selects: one on each of `count` lines."""
    stale = set(changed())
    if stale:
        print(f"{len(stale)} files have changed since `make coverage`, so that no line of them is drawn.")
    found: list[tuple[float, Mutant]] = []
    for path in sources():
        if part(path) not in PARTS or path in stale or path not in measurement.files:
            continue
        source = (ROOT / path).read_bytes()
        covered = measurement.covered(path)
        texts = source.decode().splitlines()
        by_line: dict[int, list[Change]] = defaultdict(list)
        for change in changes(source):
            if any(line in covered for line in range(change.line, change.last + 1)):
                by_line[change.line].append(change)
        seen: Counter[str] = Counter()
        for line, text in enumerate(texts, 1):
            seen[text] += 1
            if line not in by_line:
                continue
            # Where a line stands does not matter, so that a change of other lines changes little in the draw.
            chance = random.Random(f"{seed}:{Path(path).name}:{text}:{seen[text]}")
            place = chance.random()
            kinds = sorted({change.operator for change in by_line[line]})
            kind = chance.choice(kinds)
            change = chance.choice([change for change in by_line[line] if change.operator == kind])
            found.append((place, Mutant(path, change, ())))
    found.sort(key=lambda one: (one[0], one[1].key))
    chosen = [mutant for _, mutant in found[:count]]
    return [Mutant(one.path, one.change, tuple(covering(one, measurement))) for one in chosen]


def covering(mutant: Mutant, measurement: Measurement) -> list[str]:
    """Return the tests that may find a mutant, in the order in which they run.

    A line that runs at import has no test. A default argument depends on the function's lines, and a name on the lines
    of the file that use it. If there is none, all tests that run a line of the file are taken.
    """
    change = mutant.change
    covered = measurement.covered(mutant.path)
    if not change.at_import:
        lines = set(range(change.line, change.last + 1))
    elif change.body[0]:
        lines = set(range(change.body[0], change.body[1] + 1))
    else:
        lines = set(_uses(ast.parse((ROOT / mutant.path).read_bytes()), set(change.names)))
    tests = measurement.users(context for line in lines for context in covered.get(line, ()))
    if not tests:
        tests = measurement.users(context for contexts in covered.values() for context in contexts)
    return measurement.ordered(tests, mutant.path)


def _uses(tree: ast.Module, names: set[str]) -> Iterator[int]:
    """Return the lines of functions that use these names, or other names that the file makes of them at import."""
    known = 0
    while len(names) > known:
        known = len(names)
        for statement in tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and any(_used(statement, names)):
                names |= set(assigned(statement))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return (line for function in functions for statement in function.body for line in _used(statement, names))


def _used(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Yield the lines that read one of the names."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)) or (
            isinstance(node, ast.Attribute) and node.attr in names
        ):
            yield node.lineno


def run(mutant: Mutant, measurement: Measurement, seconds: float) -> dict[str, Any]:
    """Run the tests of a mutant in the copy of the tree, and return the line of results."""
    number = measurement.within(mutant.tests, seconds) if mutant.tests else 0
    first = measurement.within(mutant.tests, FIRST_SECONDS) if mutant.tests else 0
    target = TREE / mutant.path
    original = (ROOT / mutant.path).read_bytes()
    started = time.monotonic()
    result, found_by, passed = "not run", "", 0
    write_source(target, mutant.change.apply(original))
    try:
        for tests in (mutant.tests[:first], mutant.tests[first:number]):
            if not tests:
                continue
            failed, more = attempt(tests, PATIENCE_SECONDS + PATIENCE_FACTOR * max(measurement.spent(tests)), "-x")
            passed += more
            if failed is None:
                result = "timed out"
                break
            if failed:
                result, found_by = "found", failed[0]
                break
            if passed:
                result = "survived"
    finally:
        write_source(target, original)
    change = mutant.change
    return {
        "key": mutant.key,
        "path": mutant.path,
        "line": change.line,
        "operator": change.operator,
        "before": change.before,
        "after": change.after,
        "result": result,
        "found_by": found_by,
        "passed": passed,
        "tests": number,
        "cut": len(mutant.tests) - number,
        "seconds": round(time.monotonic() - started, 1),
    }


def attempt(tests: Sequence[str], seconds: float, *options: str) -> tuple[list[str] | None, int]:
    """Run tests in the copy. Return those that failed, or None after a time-out, and the number that passed."""
    chosen, result, log = FOLDER / "tests.json", FOLDER / "result.json", FOLDER / "log"
    chosen.write_text(json.dumps(tests))
    result.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(TREE / one) for one in ("", "sdk", "agents"))}
    command = [sys.executable, "-m", "tests.power.attempt", str(chosen), str(result), *options]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=TREE, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None, 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if not result.exists():  # pytest itself has died
        return [f"exit code {code}"], 0
    found = json.loads(result.read_text())
    return found["failed"], found["passed"]


def write_source(path: Path, source: bytes) -> None:
    """Write a file of the copy and remove its bytecode, which Python may take for that of a file of the same second."""
    path.write_bytes(source)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def copy_tree() -> None:
    """Copy all files that git does not ignore, and link what is built."""
    shutil.rmtree(TREE, ignore_errors=True)
    options = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(["git", *options], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in found.split("\0"):
        if name and (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, TREE / name)
    for name in BUILT:
        if (ROOT / name).exists():
            (TREE / name).symlink_to(ROOT / name)


def failing_without_mutant(results: Iterable[dict[str, Any]]) -> set[str]:
    """Return the tests that have found a mutant and that fail without it, too."""
    finders = sorted({result["found_by"] for result in results if "::" in result["found_by"]})
    if not finders:
        return set()
    failed, _ = attempt(finders, 3600.0)
    return set(failed or ()) & set(finders)


def known_results() -> dict[str, dict[str, Any]]:
    """Return the results of earlier runs."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {result["key"]: result for result in map(json.loads, lines)}


def write_results(results: dict[str, dict[str, Any]]) -> None:
    """Write all results."""
    RESULTS.write_text("".join(json.dumps(result) + "\n" for result in results.values()))


def show(result: dict[str, Any]) -> None:
    """Print one result."""
    change = f"{result['operator']}: {result['before']} -> {result['after']}".replace("\n", " ")
    by = f" by {result['found_by']}" if result["found_by"] else ""
    print(
        f"{result['result']}{by} ({result['seconds']} s)\n    {result['path']}:{result['line']}: {change}", flush=True
    )


def summarise(results: Iterable[dict[str, Any]], drawn: int) -> None:
    """Print the numbers of mutants by part."""
    kinds = ("found", "timed out", "survived", "not run")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    cut = 0
    for result in results:
        for name in (part(result["path"]), "total"):
            counts[name][result["result"]] += 1
        cut += result["cut"] if result["result"] == "survived" else 0
    print(f"{'part':24}" + "".join(f"{kind:>10}" for kind in kinds) + "   share found")
    for name in [*sorted(set(counts) - {"total"}), "total"]:
        row = counts[name]
        share = 100 * (row["found"] + row["timed out"]) / max(1, row.total() - row["not run"])
        print(f"{name:24}" + "".join(f"{row[kind]:10}" for kind in kinds) + f"{share:11.1f} %")
    print(f"{counts['total'].total()} of {drawn} mutants have run. The time cut {cut} tests of those that survived.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
