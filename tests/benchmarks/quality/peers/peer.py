"""The benchmark's end of the protocol in `line`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from service.core.space import (
    CategoricalParameter,
    Configuration,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Space,
)

PEERS = ("smac", "hebo", "openbox")
_PROGRAMS = Path(__file__).parent


class Peer:
    """A process of a peer that optimises one problem. It ends with the `with` block."""

    def __init__(self, name: str, space: Space, *, seed: int, budget: int, batch: int, noisy: bool) -> None:
        problem = {"parameters": [_described(one) for one in space.parameters], "seed": seed}
        problem |= {"budget": budget, "batch": batch, "noisy": noisy}
        # The program names its packages, for which uv makes an environment.
        command = [_uv(), "run", "--quiet", "--script", str(_PROGRAMS / f"{name}_peer.py")]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._space = space
        self._send(problem)

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, count: int) -> list[Configuration]:
        """Return configurations of the space."""
        return [self._configuration(one) for one in self._answer({"ask": count})]

    def tell(self, values: Sequence[float]) -> None:
        """Report the values of the configurations that the last `ask` returned."""
        self._answer({"tell": list(values)})

    def recommend(self) -> tuple[Configuration, float]:
        """Return the configuration that the peer recommends, and the seconds of CPU that it has used."""
        found = self._answer({"recommend": True})
        return self._configuration(found["configuration"]), found["seconds"]

    def _configuration(self, found: Mapping[str, Any]) -> Configuration:
        """Return the configuration without parameters that are inactive."""
        return self._space.prune({name: found[name] for name in self._space.names() if name in found})

    def _answer(self, request: Any) -> Any:
        self._send(request)
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"The peer has ended: {_pipe(self._process.stderr).read()[-2000:]}")
        return json.loads(line)

    def _send(self, request: Any) -> None:
        pipe = _pipe(self._process.stdin)
        pipe.write(json.dumps(request) + "\n")
        pipe.flush()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _uv() -> str:
    own = Path(".cache/uv/bin/uv")
    found = shutil.which("uv") or (str(own) if own.exists() else None)
    if found is None:
        raise RuntimeError("A peer needs uv, which makes an environment for it.")
    return found


def _described(parameter: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {"name": parameter.name, "kind": parameter.kind, "parent": None}
    match parameter:
        case FloatParameter() | IntParameter():
            found |= {"min": parameter.min, "max": parameter.max, "log": parameter.log}
        case OrdinalParameter() | CategoricalParameter():
            found["values"] = parameter.values
        case _:
            found["values"] = [False, True]
    if parameter.condition is not None:
        found |= {"parent": parameter.condition.parent, "active_for": parameter.condition.values}
    return found
