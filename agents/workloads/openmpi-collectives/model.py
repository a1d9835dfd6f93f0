"""Hockney's model of broadcast and reduction: messages with a start and a time for each byte, on a critical path.

Ranks that share processors also share their work, so that the time is at least that of all copies together. The two
constants are rough, because only the order of the predictions counts.
"""

from collections.abc import Mapping
from math import ceil, log2
from typing import Any

# The start of a message and the time of a byte, for a copy through shared memory, in microseconds.
_START, _BYTE = 3.0, 1.5e-4
_PROCESSORS = 1


def predict(configuration: Mapping[str, Any], context: Mapping[str, str]) -> float | None:
    """Return the microseconds; None for other collectives, and where Open MPI decides itself."""
    name = context["application"]
    algorithm = configuration.get(f"{name}_algorithm")
    ranks, size = configuration["ranks"], configuration["bytes"]
    segment = min(configuration.get(f"{name}_segmentsize") or size, size)
    fanout = configuration.get(f"{name}_fanout") or 1
    parts, rounds = ceil(size / segment), ceil(log2(ranks))
    one = _START + segment * _BYTE
    whole = parts * one
    exchange = 2 * rounds * _START + 2 * size * _BYTE
    path = {
        "linear": (ranks - 1) * whole,
        "basic_linear": (ranks - 1) * whole,
        "chain": (ceil((ranks - 1) / fanout) - 1 + fanout * parts) * one,
        "pipeline": (ranks - 2 + parts) * one,
        "split_binary_tree": (rounds + parts) * one + _START + size / 2 * _BYTE,
        "binary": (rounds + 2 * parts) * one,
        "binary_tree": (rounds + 2 * parts) * one,
        "in-order_binary": (rounds + 2 * parts) * one,
        "binomial": rounds * whole,
        "knomial": rounds * whole,
        "rabenseifner": exchange,
    }.get(algorithm or "")
    if name not in ("bcast", "reduce") or path is None:
        return None
    copies = (ranks - 1) * (exchange if algorithm == "rabenseifner" else whole)
    return max(path, copies / _PROCESSORS)
