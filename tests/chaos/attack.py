"""A tenant that sends what once stopped others, all the time: `python -m tests.chaos.attack URL GRPC TOKEN COUNTS`.

Each kind of attack has a thread of its own. COUNTS is a file with the numbers of answers by attack and status.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import httpx

from tests.fuzz.values import PARAMETERS

# So that the client itself takes little of the machine that both share.
NICENESS = 19
PAUSE_SECONDS = 0.05
TIMEOUT_SECONDS = 30.0
# More than a metric may be, and the most that it may be.
HUGE = (sys.float_info.max, 1e100, -1e100)
_SPACE = {"parameters": [{"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5}]}
_CHAIN = {"parameters": PARAMETERS["50 conditions, each below another"]()}
_WIDE = {"parameters": [{"name": f"x{number}", "type": "float", "min": 0.0, "max": 1.0} for number in range(20)]}
_numbers = count()
# Components of an agent without content: the field, and the length 0.
_COMPONENTS = bytes([6 << 3 | 2, 0]) * 470_000


class Attacker:
    """The calls of the tenant, and how they were answered."""

    def __init__(self, url: str, grpc_address: str, token: str) -> None:
        self._grpc_address = grpc_address
        self._headers = {"Authorization": f"Bearer {token}"}
        self._url = f"{url}/api/v1"
        self.counts: Counter[str] = Counter()
        self.kinds: Mapping[str, Callable[[httpx.Client], None]] = {
            "huge results": self.huge_results,
            "search spaces": self.search_spaces,
            "webhooks": self.webhooks,
            "quality of the matching": self.quality,
            "slow suggestions": self.slow_suggestions,
            "empty components": self.empty_components,
        }
        self._hook = slow_server()
        self._kind = threading.local()

    def repeat(self, kind: str) -> None:
        """Send one kind of attack without an end."""
        self._kind.name = kind
        with httpx.Client(base_url=self._url, headers=self._headers, timeout=TIMEOUT_SECONDS) as client:
            while True:
                with suppress(httpx.HTTPError):
                    self.kinds[kind](client)
                time.sleep(PAUSE_SECONDS)

    def huge_results(self, client: httpx.Client) -> None:
        """Report the largest numbers, ask for more, and read what is known."""
        for algorithm in ("random", "gp"):
            name = self._study(client, algorithm, _SPACE)
            for x, y in zip((0.1, 0.5, 0.9), HUGE, strict=True):
                self._send(client, "POST", f"/studies/{name}/trials", {"params": {"x": x}, "metrics": {"y": y}})
            self._send(client, "POST", f"/studies/{name}/suggestions", {"count": 1})
            for path in ("analysis", "insight", "best", "trials.json"):
                self._send(client, "GET", f"/studies/{name}/{path}")
            self._send(client, "DELETE", f"/studies/{name}")

    def search_spaces(self, client: httpx.Client) -> None:
        """Plan and use a space of 50 conditions, each below another."""
        self._send(client, "POST", "/plans", {"spec": _spec("auto", _CHAIN)})
        for algorithm in ("gp", "ga"):
            name = self._study(client, algorithm, _CHAIN)
            self._send(client, "POST", f"/studies/{name}/suggestions", {"count": 20})
            self._send(client, "DELETE", f"/studies/{name}")

    def webhooks(self, client: httpx.Client) -> None:
        """Have notifications sent to a server that never answers."""
        body = {"medium": "webhook", "target": f"{self._hook}/{next(_numbers)}", "kinds": ["study.ended"]}
        channel = self._send(client, "POST", "/notice-channels", body).get("id")
        if channel:
            for _ in range(12):
                self._send(client, "POST", f"/notice-channels/{channel}/test")
            self._send(client, "DELETE", f"/notice-channels/{channel}")

    def quality(self, client: httpx.Client) -> None:
        """Measure the quality of the matching of long commands."""
        for learn in ("false", "true"):
            self._send(client, "GET", f"/matching/quality?learn={learn}")

    def slow_suggestions(self, client: httpx.Client) -> None:
        """Ask for as many suggestions of a model as one ask may be for, which need more CPU than an operation has."""
        name = self._study(client, "gp", _WIDE)
        for number in range(60):
            params = {f"x{at}": ((number + 1) * (at + 3) % 61) / 61 for at in range(20)}
            metrics = {"y": sum((value - 0.3) ** 2 for value in params.values())}
            self._send(client, "POST", f"/studies/{name}/trials", {"params": params, "metrics": metrics})
        for _ in range(3):
            self._send(client, "POST", f"/studies/{name}/suggestions", {"count": 1000})
        self._send(client, "GET", f"/studies/{name}/insight")
        self._send(client, "DELETE", f"/studies/{name}")

    def empty_components(self, _: httpx.Client) -> None:
        """Register an agent with as many components without content as a request has room for."""
        with grpc.insecure_channel(self._grpc_address) as channel:
            call: Any = channel.unary_unary("/trimtab.agent.v1.AgentService/Register")
            try:
                call(_COMPONENTS, timeout=TIMEOUT_SECONDS, metadata=[("authorization", self._headers["Authorization"])])
            except grpc.RpcError as error:
                self.counts[f"{self._kind.name}: {error.code().name}"] += 1

    def _study(self, client: httpx.Client, algorithm: str, space: Mapping[str, Any]) -> str:
        name = f"attack-{os.getpid()}-{next(_numbers)}"
        self._send(client, "POST", "/studies", {"name": name, "spec": _spec(algorithm, space)})
        return name

    def _send(self, client: httpx.Client, method: str, path: str, body: object = None) -> dict[str, Any]:
        try:
            answer = client.request(method, path, json=body)
        except httpx.HTTPError as error:
            self.counts[f"{self._kind.name}: {type(error).__name__}"] += 1
            raise
        self.counts[f"{self._kind.name}: {answer.status_code}"] += 1
        if answer.status_code == 429:
            time.sleep(PAUSE_SECONDS)
        found = answer.json() if "json" in answer.headers.get("content-type", "") else None
        return found if isinstance(found, dict) else {}


def slow_server() -> str:
    """Return the address of a server on this machine that accepts connections and never answers."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=100)
    held: list[socket.socket] = []

    def accept() -> None:
        while True:
            held.append(listening.accept()[0])
            del held[:-500]

    threading.Thread(target=accept, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def _spec(algorithm: str, space: Mapping[str, Any]) -> dict[str, Any]:
    objectives = [{"metric": "y", "goal": "minimize"}]
    return {"space": space, "objectives": objectives, "algorithm": {"name": algorithm}, "noisy": False}


def main(url: str, grpc_address: str, token: str, counts: str) -> None:
    """Attack until somebody kills this process."""
    os.nice(NICENESS - os.nice(0))
    attacker = Attacker(url, grpc_address, token)
    for kind in attacker.kinds:
        threading.Thread(target=attacker.repeat, args=(kind,), daemon=True).start()
    while True:
        time.sleep(1.0)
        part = Path(f"{counts}.part")
        part.write_text(json.dumps(dict(sorted(attacker.counts.items()))))
        part.replace(counts)


if __name__ == "__main__":
    main(*sys.argv[1:])
