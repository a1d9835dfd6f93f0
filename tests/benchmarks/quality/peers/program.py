"""A program of this folder, which runs in an environment of its own and answers requests as `line` says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.benchmarks.uv import uv

_FOLDER = Path(__file__).parent


class Program:
    """A running program. It ends with the `with` block, or when the benchmark ends."""

    def __init__(self, name: str) -> None:
        # The program names its packages, for which uv makes an environment.
        command = [uv(), "run", "--quiet", "--script", str(_FOLDER / f"{name}.py")]
        # Matrices are small, so further threads would mostly wait, and searches run at the same time.
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command,
            env=os.environ | threads,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def answer(self, request: Any) -> Any:
        """Return the answer to a request; raise `RuntimeError` if the program has ended."""
        pipe = _pipe(self._process.stdin)
        pipe.write(json.dumps(request) + "\n")
        pipe.flush()
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"The program has ended: {_pipe(self._process.stderr).read()[-2000:]}")
        return json.loads(line)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
