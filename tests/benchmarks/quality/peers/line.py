"""The protocol between the benchmark and another package's program: JSON objects, one on each line.

Each request has one answer. To an optimiser, the first one describes the problem: `parameters`, `seed`, `budget`,
`batch` and `noisy`. A parameter has a `name`, a `kind` (float, int, ordinal, categorical or bool), `min`, `max` and
`log` or its `values`, and perhaps a `parent` with the values `active_for` which it is active. Then come `{"ask": n}`,
which is answered by a list of n configurations, `{"tell": values}`, with the values of these configurations in their
order, and `{"recommend": true}`, which is answered by a configuration and the seconds of CPU so far. The others are
answered by null. `bayesmark_tasks` has requests of its own.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, Protocol


class Optimiser(Protocol):
    """An optimiser that minimises."""

    def ask(self, count: int) -> list[dict[str, Any]]:
        """Return configurations."""
        ...

    def tell(self, values: list[float]) -> None:
        """Learn the values of the configurations that the last `ask` returned."""
        ...

    def recommend(self) -> dict[str, Any]:
        """Return the configuration that the package recommends."""
        ...


def serve(make: Callable[[dict[str, Any]], Optimiser]) -> None:
    """Answer requests to an optimiser until the input ends."""
    began = time.process_time()
    optimiser: Optimiser | None = None

    def answer(request: dict[str, Any]) -> Any:
        nonlocal optimiser
        if optimiser is None:
            optimiser = make(request)
        elif "ask" in request:
            return optimiser.ask(request["ask"])
        elif "tell" in request:
            optimiser.tell(request["tell"])
        else:
            return {"configuration": optimiser.recommend(), "seconds": time.process_time() - began}
        return None

    answer_requests(answer)


def answer_requests(answer: Callable[[dict[str, Any]], Any]) -> None:
    """Answer each request by what `answer` returns, until the input ends."""
    # Packages print, so only this program has the descriptor of the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        found = answer(json.loads(line))
        answers.write(json.dumps(found, default=lambda value: value.item()) + "\n")
        answers.flush()
