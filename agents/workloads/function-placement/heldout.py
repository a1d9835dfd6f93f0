"""The held-out profile of a target: it judges layouts, and no layout is made from it.

A layout looks better on the profile that made it than on another one, and the more so the fewer samples the profile
has. `prepare.py` therefore records one profile with thousands of samples, which judges all layouts of the target.
"""

import json
import tempfile
from pathlib import Path

from graph import CallGraph, graph_of
from sampling import profiled
from serving import MachineError
from targets import FOLDER, Target

FILE = "heldout.json"
# Processor time between two samples, and requests as a share of a measurement's.
PERIOD, REQUESTS = 100, 3.0


def record(target: Target) -> CallGraph:
    """Profile a prepared target and keep the result. Raise ServerError or MachineError."""
    with tempfile.TemporaryDirectory() as folder:
        stacks, linked = profiled(target, Path(folder), PERIOD, "gold", REQUESTS)
    graph = graph_of(stacks, linked.symbols)
    if not graph.arcs:
        raise MachineError(f"no calls in {len(stacks)} samples of {target.name}: the load was too short")
    (target.place / FILE).write_text(json.dumps(graph.to_json()) + "\n")
    return graph


def read(target: Target) -> CallGraph:
    """Return the held-out profile of a target. Raise MachineError if there is none."""
    file = target.place / FILE
    if not file.is_file():
        raise MachineError(f"no held-out profile of {target.name}: run python3 {FOLDER / 'prepare.py'} {target.name}")
    return CallGraph.from_json(json.loads(file.read_text()))
