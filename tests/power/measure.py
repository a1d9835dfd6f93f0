"""Run tests, print how many lines they cover in each part, and keep which test runs which line (`make coverage`).

All options are options of `tests.run`, except `--append`, which adds to the last measurement. The result is in
.cache/coverage: `lines` is a database of coverage.py, and `tests.json` has the time, the result and the shared fixtures
of each test, and the digest of each measured file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import coverage

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "coverage"
LINES = FOLDER / "lines"
TESTS = FOLDER / "tests.json"


def main(arguments: Sequence[str]) -> int:
    """Measure and report. Return the exit code of the tests."""
    append = "--append" in arguments
    if append and changed():
        print(f"These files have changed since the last measurement, so nothing can be added to it: {changed()}")
        return 2
    if not append:
        shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = [argument for argument in arguments if argument != "--append"]
    command = [sys.executable, "-m", "coverage", "run", "-m", "tests.run", "--minutes=180"]
    command += ["-p", "tests.power.contexts", *wanted]
    code = subprocess.run(command, cwd=ROOT, check=False, env={**os.environ, "COVERAGE_CORE": "ctrace"}).returncode
    combine()
    report()
    return code


def combine() -> None:
    """Combine the databases and records of all processes."""
    measured = coverage.Coverage(data_file=str(LINES), config_file=str(ROOT / "pyproject.toml"))
    if LINES.exists():
        measured.load()
    measured.combine([str(path) for path in FOLDER.glob("part.*")])
    measured.save()
    tests: dict[str, Any] = {}
    fixtures: dict[str, float] = {}
    for record in FOLDER.glob("tests*.json"):
        found = json.loads(record.read_text())
        tests.update(found["tests"])
        for name, seconds in found["fixtures"].items():
            fixtures[name] = max(seconds, fixtures.get(name, 0.0))
        record.unlink()
    files = {str(path.relative_to(ROOT)): digest(path) for path in map(Path, measured.get_data().measured_files())}
    TESTS.write_text(json.dumps({"tests": tests, "fixtures": fixtures, "files": files}))


def changed() -> list[str]:
    """Return the measured files whose text has changed since the measurement."""
    files: dict[str, str] = json.loads(TESTS.read_text())["files"]
    return sorted(path for path, known in files.items() if digest(ROOT / path) != known)


def digest(path: Path) -> str:
    """Return a digest of a file, or an empty string if it is not there."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def report() -> None:
    """Print the numbers of lines and the share that is covered, by part and in total."""
    measured = coverage.Coverage(data_file=str(LINES), config_file=str(ROOT / "pyproject.toml"))
    measured.load()
    lines: dict[str, int] = defaultdict(int)
    missing: dict[str, int] = defaultdict(int)
    for path in sources():
        _, statements, _, missed, _ = measured.analysis2(str(ROOT / path))
        for name in (part(path), "total"):
            lines[name] += len(statements)
            missing[name] += len(missed)
    print(f"{'part':24} {'lines':>7} {'missed':>7} {'covered':>9}")
    for name in [*sorted(set(lines) - {"total"}), "total"]:
        print(f"{name:24} {lines[name]:7} {missing[name]:7} {100 * (1 - missing[name] / lines[name]):7.1f} %")


def sources() -> list[str]:
    """Return the paths of all measured source files."""
    options = ["ls-files", "--cached", "--others", "--exclude-standard", "--"]
    parts = ["service/*.py", "sdk/trimtab/*.py", "agents/trimtab_*/*.py"]
    found = subprocess.run(["git", *options, *parts], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(path for path in found.splitlines() if (ROOT / path).stat().st_size)


def part(path: str) -> str:
    """Return the part that a source file belongs to, such as `service/core` or `sdk/trimtab`."""
    return "/".join(path.split("/")[:2]) if path.count("/") > 1 else path.split("/")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
