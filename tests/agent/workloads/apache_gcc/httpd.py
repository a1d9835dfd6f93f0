"""Apache httpd, as the tests build and watch it."""

import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.agent.workloads.shared import WORKLOADS, run

WORKLOAD = WORKLOADS / "apache-gcc"
LEVELS = ("O0", "O1", "O2", "O3", "Os", "Ofast")
# the level that compiles fastest
QUICK = "opt-level=O0"
# of the component file, in its part `build`
BUILD_LIMIT = "  timeout: 900\n"


def copy(folder: Path) -> Path:
    """Copy the workload without its sources, and the files that it shares with others; return its folder.

    A build of the copy may take as long as the busiest machine needs for it.
    """
    for name in ("apache-gcc", "gcc-flags"):
        shutil.copytree(WORKLOADS / name, folder / name, ignore=shutil.ignore_patterns("source", ".part"))
    shutil.copy(WORKLOADS / "debian_sources.py", folder)
    component = folder / "apache-gcc" / "component.yaml"
    text = component.read_text()
    assert BUILD_LIMIT in text
    component.write_text(text.replace(BUILD_LIMIT, "  timeout: 3600\n", 1))
    return folder / "apache-gcc"


def running(program: Path) -> list[int]:
    """Return the processes of a program."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if (process / "exe").readlink() == program:
                    found.append(int(process.name))
            except OSError:
                continue
    return found


def outliving(program: Path) -> list[str]:
    """Return the shared memory, semaphores included, that would remain if a program's processes were killed."""
    maps: list[str] = []
    for pid in running(program):
        with suppress(OSError):  # it was about to execute the program of a page
            maps += Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in maps if "/SYSV" in line or "/dev/shm" in line]


def run_measure(
    build: Path, work: Path, pages: str, script: Path = WORKLOAD / "measure.py", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run measure.py on a build, in the folder `work`."""
    return run([sys.executable, script, build, pages], work, **variables)
