"""The locality of a layout: how far calls go, and how many pages have code of the profile."""

from collections.abc import Mapping, Sequence

from graph import CallGraph
from ordering import PAGE

DISTANCES = {"64b": 64, "4k": PAGE, "2m": 2 << 20}


def addresses_of(order: Sequence[str], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the addresses of functions that follow one another without gaps."""
    address, found = 0, {}
    for name in order:
        found[name] = address
        address += sizes[name]
    return found


def distance(graph: CallGraph, address: Mapping[str, int], caller: str, callee: str) -> float:
    """Return the bytes from the middle of the caller to the start of the callee [ottoni-2017, figure 6]."""
    return abs(address[caller] + graph.size[caller] / 2 - address[callee])


def cost(graph: CallGraph, address: Mapping[str, int]) -> float:
    """Return the sum of the distances of all calls, weighted with their samples."""
    return sum(weight * distance(graph, address, *arc) for arc, weight in graph.arcs.items())


def locality(graph: CallGraph, address: Mapping[str, int]) -> dict[str, float]:
    """Return the figures of a layout.

    Returns:
        `calls_64b`, `calls_4k` and `calls_2m`: the percentage of sampled calls that go no further; `call_distance`: the
        mean distance of a call in bytes; `hot_pages`: pages of 4 KiB with a function of the profile.
    """
    total = sum(graph.arcs.values()) or 1.0
    figures = {}
    for name, limit in DISTANCES.items():
        near = sum(weight for arc, weight in graph.arcs.items() if distance(graph, address, *arc) <= limit)
        figures[f"calls_{name}"] = 100 * near / total
    pages: set[int] = set()
    for name, samples in graph.time.items():
        if samples:
            pages.update(range(address[name] // PAGE, (address[name] + max(graph.size[name], 1) - 1) // PAGE + 1))
    return {**figures, "call_distance": cost(graph, address) / total, "hot_pages": len(pages)}
