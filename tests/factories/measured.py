"""Studies of each kind whose true functions are known, measured by a script through the SDK."""

from __future__ import annotations

import math
import random

import trimtab
from tests.factories.service import EmbeddedService

LIMIT = "memory_mb <= 900"


class System:
    """A storage system whose time, memory and energy follow from its settings, with 2 % noise."""

    def __init__(self, seed: int) -> None:
        self._noise = random.Random(seed)

    def seconds(self, params: trimtab.Params, size: float = 1.0) -> float:
        """Return a running time: about 9.5 s for the default and at least 6 s, for an input of this relative size."""
        threads, block = float(params["threads"]), float(params["block_kb"])
        time = 4.0 + 12.0 / threads + 0.09 * threads * size + 0.35 * abs(math.log2(block) - 6.0 - size)
        time += {"sync": 1.2, "async": 0.0, "direct": 0.5}[str(params["mode"])] - 0.4 * bool(params["huge_pages"])
        return time * self._noise.gauss(1.0, 0.02)

    def memory(self, params: trimtab.Params) -> float:
        """Return the memory in MB: it grows with threads and blocks, so that fast settings break LIMIT."""
        threads, block = float(params["threads"]), float(params["block_kb"])
        used = 120.0 + 60.0 * threads + 0.9 * block + 200.0 * bool(params["huge_pages"])
        return used * self._noise.gauss(1.0, 0.01)

    def joules(self, params: trimtab.Params) -> float:
        """Return the energy, which grows with the threads, and so works against the time."""
        return self.seconds(params) * (20.0 + 6.0 * float(params["threads"]))


SPACE: list[trimtab.Parameter] = [
    trimtab.Int("threads", 1, 32, default=4),
    trimtab.Ordinal("block_kb", [4, 16, 64, 256, 1024], default=16),
    trimtab.Categorical("mode", ["sync", "async", "direct"], default="sync"),
    trimtab.Bool("huge_pages", default=False),
]


def measure(client: trimtab.Client, trials: int = 40) -> None:
    """Create and run the studies `limits`, `several`, `contexts` and `progress`, each of `trials` trials."""
    system = System(7)
    limits = client.create_study(
        "limits", SPACE, [trimtab.Minimize("seconds", unit="s")],
        outcome_constraints=[LIMIT], algorithm="random", max_trials=trials,
    )  # fmt: skip
    limits.optimize(lambda params: {"seconds": system.seconds(params), "memory_mb": system.memory(params)})
    several = client.create_study(
        "several", SPACE, [trimtab.Minimize("seconds", unit="s"), trimtab.Minimize("joules", unit="J")],
        algorithm="random", max_trials=trials,
    )  # fmt: skip
    several.optimize(lambda params: {"seconds": system.seconds(params), "joules": system.joules(params)})
    sizes = {"small": 0.5, "medium": 1.0, "large": 3.0}
    contexts = client.create_study(
        "contexts", [*SPACE, trimtab.Categorical("size", list(sizes))], [trimtab.Minimize("seconds", unit="s")],
        algorithm="random", max_trials=trials, context=["size"],
    )  # fmt: skip
    contexts.optimize(lambda params: {"seconds": system.seconds(params, sizes[str(params["size"])])})
    _progress(client, system, trials)


def _progress(client: trimtab.Client, system: System, trials: int) -> None:
    """Run the study `progress`, whose trials report a value for each of ten steps."""
    study = client.create_study(
        "progress", SPACE, [trimtab.Minimize("seconds", unit="s")], algorithm="random", max_trials=trials
    )
    for _ in range(trials):
        (trial,) = study.ask()
        end = system.seconds(trial.params)
        for step in range(1, 11):
            study.report(trial, step=step, metrics={"seconds": end * (1.0 + 1.5 / step)})
        study.tell(trial, {"seconds": end})


def measured(service: EmbeddedService) -> None:
    """Make the studies in a service that runs."""
    with trimtab.Client(service.grpc_address, token=service.token) as client:
        measure(client)
