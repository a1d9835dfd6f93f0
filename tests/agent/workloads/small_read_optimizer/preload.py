"""Processes that the library watches, and their counters."""

import json
from pathlib import Path

from tests.agent.workloads.shared import WORKLOADS

WORKLOAD = WORKLOADS / "small-read-optimizer"
SOURCES = WORKLOAD / "src"
LIBRARY = [SOURCES / name for name in ("sro.c", "settings.c", "hooks.c")]
HELPERS = Path(__file__).parent


def preloaded(built: Path, counters: Path, **variables: object) -> dict[str, object]:
    """Return the variables of a process that the library watches, in the files below `built`."""
    return {"LD_PRELOAD": built / "libsro.so", "SRO_COUNTERS": counters, "SRO_DIRECTORY": built, **variables}


def counted(counters: Path) -> list[dict[str, int]]:
    """Return the counters of each process that has written some."""
    return [json.loads(line) for line in counters.read_text().splitlines()] if counters.exists() else []
