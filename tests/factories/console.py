"""A service with what people have in theirs: studies that run, have ended, wait; an agent at work."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.factories.agent import COMPONENT, RealAgent, write_component
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService

SPEC: dict[str, Any] = {
    "space": {
        "parameters": [
            {"name": "threads", "type": "int", "min": 1, "max": 32, "default": 8},
            {"name": "block_kb", "type": "ordinal", "values": [4, 16, 64, 256, 1024], "default": 16},
            {"name": "alpha", "type": "float", "min": 0.001, "max": 10.0, "log": True, "default": 0.1},
            {"name": "mode", "type": "categorical", "values": ["sync", "async", "direct"], "default": "sync"},
            {"name": "huge_pages", "type": "bool", "default": False},
        ],
    },
    "objectives": [{"metric": "seconds", "goal": "minimize", "unit": "s"}],
    "algorithm": {"name": "random"},
}


class Rest:
    """The REST interface, for the administrator."""

    def __init__(self, service: EmbeddedService) -> None:
        headers = {"Authorization": f"Bearer {service.token}"}
        self._client = httpx.Client(base_url=f"{service.http_url}/api/v1", headers=headers, timeout=PATIENCE)

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        """Send a request that must succeed, and return the answer. `path` is below /api/v1."""
        answer = self._client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def text(self, path: str) -> str:
        """Return the text at `path`, which must exist."""
        answer = self._client.get(path)
        assert answer.is_success, answer.text
        return answer.text

    def study(self, name: str, tags: list[str] | None = None, **changes: object) -> str:
        """Create a study of SPEC."""
        self("POST", "/studies", {"name": name, "spec": {**SPEC, **changes}, "tags": tags or []})
        return name

    def measure(self, name: str, trials: int, seed: int = 0) -> None:
        """Ask for trials and tell what a noisy system of this kind takes."""
        noise = random.Random(seed)
        for _ in range(trials):
            (trial,) = self("POST", f"/studies/{name}/suggestions", {"count": 1})["trials"]
            value = seconds(trial["params"]) * noise.gauss(1, 0.02)
            self("POST", f"/studies/{name}/trials/{trial['number']}/complete", {"metrics": {"seconds": value}})


def seconds(params: dict[str, Any]) -> float:
    """Return the running time of the tuned system without noise."""
    threads = 4.0 / params["threads"] + 0.02 * params["threads"]
    block = 0.15 * abs(math.log2(params["block_kb"]) - 7)
    mode = {"sync": 0.5, "async": 0.2, "direct": 0.35}[params["mode"]]
    tuned: float = threads + block + mode + 0.3 * abs(math.log10(params["alpha"]) + 0.3) - 0.1 * params["huge_pages"]
    return tuned


@contextmanager
def furnished(service: EmbeddedService, folder: Path) -> Iterator[Rest]:
    """Run a service with its studies and an agent that runs one of them."""
    rest = Rest(service)
    for number, (tags, trials) in enumerate(((["nightly"], 30), (["nightly", "gcc 13"], 24), ([], 12)), 1):
        name = rest.study(f"io-path-{number}", tags, budget={"max_trials": trials})
        rest.measure(name, trials, seed=number)
    rest.measure(rest.study("io-path-live", ["nightly"], budget={"max_trials": 40}), 15, seed=9)
    rest.study("waits-for-an-agent", execution={"component": "mpi-collectives", "application": "allreduce"})
    rest.study("out-of-disk")
    rest(
        "PATCH",
        "/studies/out-of-disk",
        {"state": "PAUSED", "reason": "Ten failures in a row: No space left on device."},
    )
    # A study goes on for as long as the tests. It leaves the processors to them.
    components = write_component(folder / "components", folder / "runs", delay=0.3, quick_runs=50)
    agent = RealAgent(
        folder, service.grpc_address, service.data_dir / "admin-token", components, slots=2, name="node-17"
    )
    with agent:
        space = [
            {"name": "x", "type": "float", "min": -10.0, "max": 10.0, "default": 0.0},
            {"name": "n", "type": "int", "min": 0, "max": 8, "default": 4},
        ]
        for name, budget in (("bowl-1", 12), ("bowl-2", 2_000)):
            rest.study(
                name,
                space={"parameters": space},
                objectives=[{"metric": "value", "goal": "minimize"}],
                budget={"max_trials": budget},
                execution={
                    "component": COMPONENT, "application": "only", "parallelism": 2, "placement": {"exclusive": False},
                },
            )  # fmt: skip
        wait_for(lambda: bool(rest("GET", "/studies/bowl-1")["state"] == "COMPLETED"), "a study on the agent ends")
        wait_for(lambda: bool(rest("GET", "/components/bowl")["best"]), "its best settings are known")
        yield rest
