"""Algorithms that order the functions of a call graph [pettis-1990], [ottoni-2017, section 5].

All of them return the functions of the profile only. Functions that no sample has seen stay in the linker's order.
"""

import heapq
import random
from collections import defaultdict
from collections.abc import Sequence

from graph import CallGraph

PAGE = 4096


def pettis_hansen(graph: CallGraph) -> list[str]:
    """Return the order of the Pettis-Hansen heuristic.

    The arcs have no direction. The two groups at the heaviest one are merged until none is left. Each group may be
    reversed, so that the ends that touch have the heaviest original arc. Groups without arcs between them follow one
    another by their samples.
    """
    original: dict[frozenset[str], float] = defaultdict(float)
    for (caller, callee), weight in graph.arcs.items():
        original[frozenset((caller, callee))] += weight
    groups = {name: [name] for name in sorted(graph.time)}
    edges: dict[str, dict[str, float]] = {name: {} for name in groups}
    heap = []
    for pair, weight in original.items():
        one, other = sorted(pair)
        edges[one][other] = edges[other][one] = weight
        heap.append((-weight, one, other))
    heapq.heapify(heap)
    while heap:
        weight, one, other = heapq.heappop(heap)
        if one not in groups or other not in groups or edges[one].get(other) != -weight:
            continue  # one of the groups has been merged, or the arc was coalesced with others
        groups[one] = _joined(groups[one], groups.pop(other), original)
        del edges[one][other]
        for neighbour, more in edges.pop(other).items():
            if neighbour == one:
                continue
            del edges[neighbour][other]
            coalesced = edges[one].get(neighbour, 0.0) + more
            edges[one][neighbour] = edges[neighbour][one] = coalesced
            heapq.heappush(heap, (-coalesced, *sorted((one, neighbour))))
    ranked = sorted(groups.values(), key=lambda group: (-sum(graph.time[name] for name in group), group[0]))
    return [name for group in ranked for name in group]


def _joined(one: list[str], other: list[str], weights: dict[frozenset[str], float]) -> list[str]:
    """Return both groups, each reversed or not, so that the arc of the ends that touch is the heaviest."""
    choices = [(first, second) for first in (one, one[::-1]) for second in (other, other[::-1])]
    first, second = max(choices, key=lambda pair: weights.get(frozenset((pair[0][-1], pair[1][0])), 0.0))
    return first + second


def call_chain_clustering(graph: CallGraph, threshold: int = PAGE) -> list[str]:
    """Return the order of C3, call-chain clustering.

    Beginning with the function that has most samples, the cluster of each function is appended to the cluster of its
    most likely caller, unless one of the two is larger than `threshold` bytes. The clusters are then sorted by their
    samples per byte.
    """
    callers: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for (caller, callee), weight in graph.arcs.items():
        callers[callee].append((-weight, caller))
    cluster = {name: [name] for name in graph.time}
    size = {name: graph.size[name] for name in graph.time}  # by the first function of a cluster
    for name in sorted(graph.time, key=lambda name: (-graph.time[name], name)):
        if not callers[name]:
            continue
        _, caller = min(callers[name])
        before, after = cluster[caller], cluster[name]
        if before is after or max(size[before[0]], size[after[0]]) > threshold:
            continue
        size[before[0]] += size.pop(after[0])
        before.extend(after)
        for moved in after:
            cluster[moved] = before
    clusters = {id(one): one for one in cluster.values()}.values()

    def density(one: list[str]) -> float:
        return sum(graph.time[name] for name in one) / max(size[one[0]], 1)

    return [name for one in sorted(clusters, key=lambda one: (-density(one), one[0])) for name in one]


def shuffled(names: Sequence[str], seed: int = 0) -> list[str]:
    """Return all functions in random order."""
    order = sorted(names)
    random.Random(seed).shuffle(order)
    return order
