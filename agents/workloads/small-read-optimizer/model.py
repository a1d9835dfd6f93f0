"""A model of the seconds that the reads of a pattern take: which reads hit what was prefetched, and when it arrived.

The model plays the pattern once, by the rules of the library, with one line of a fixed bandwidth to the back-end. It
knows nothing of the kernel's own read-ahead, of the time of the processor, and of the numbers that fakeapp draws. It
was written from component.yaml and the library's rules, before it was compared with any measurement.
"""

import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_PAGE = 4096
_FILE = 256 << 20
# Of the slow file server, and of a read that finds its page in memory.
_LATENCY, _BANDWIDTH, _HIT = 500e-6, 200e6, 5e-6


class Pattern(NamedTuple):
    """The flags of fakeapp. From a pair, each lead draws a number; without `operations`, each lead has one turn."""

    operations: int
    leads: int
    scatter: tuple[int, int]
    turn: tuple[int, int]
    advance: int


_PATTERNS = {
    "columns": Pattern(2000, 64, (0, 0), (1, 1), 64 << 10),
    "sro-1": Pattern(2000, 4, (5 << 20, 5 << 20), (100, 100), 1 << 20),
    "sro-2": Pattern(4000, 220, (256 << 10, 256 << 10), (1, 1), 0),
    "sro-3": Pattern(0, 30, (5 << 10, 5 << 20), (20, 100), 0),
    "hotspots": Pattern(1800, 12, (4 << 20, 4 << 20), (150, 150), 0),
}


def predict(configuration: Mapping[str, Any], context: Mapping[str, str]) -> float | None:
    """Return the seconds of the reads; None for an application without a known pattern."""
    pattern = _PATTERNS.get(context["application"])
    if pattern is None:
        return None
    length, threshold = configuration["SRO_SEQUENCE_LENGTH"], configuration["SRO_CLUSTER_THRESHOLD"]
    bin_size, zone = configuration["SRO_DSC_BINSIZE"], configuration["SRO_PREFETCH_SIZE"]
    arrival: dict[int, float] = {}
    # From each page towards the next one that was never requested.
    onward = list(range(_FILE // _PAGE + 1))
    window: deque[int] = deque()
    counts: Counter[int] = Counter()
    clock = line = 0.0
    for offset in _offsets(pattern):
        page, place = offset // _PAGE, offset // bin_size
        if page in arrival:
            clock = max(clock, arrival[page]) + _HIT
        else:
            line = max(clock, line) + _PAGE / _BANDWIDTH
            clock = arrival[page] = line + _LATENCY
            onward[page] = page + 1
        window.append(place)
        counts[place] += 1
        if len(window) > length:
            oldest = window.popleft()
            counts[oldest] = max(counts[oldest] - 1, 0)
        if counts[place] < threshold:
            continue
        counts[place] = 0
        begin = max(offset - zone // 2, 0) // _PAGE
        end, near = min(begin + zone // _PAGE, _FILE // _PAGE), _next(onward, begin)
        while near < end:
            line = max(clock, line) + _PAGE / _BANDWIDTH
            arrival[near] = line + _LATENCY
            onward[near] = near + 1
            near = _next(onward, near)
    return clock


def _next(onward: list[int], page: int) -> int:
    """Return the first page from `page` on that was never requested."""
    while onward[page] != page:
        onward[page] = onward[onward[page]]
        page = onward[page]
    return page


def _offsets(pattern: Pattern) -> Iterator[int]:
    """Yield the places of the reads: each lead has its turns in a chunk of the file, around a place that advances."""
    draw = random.Random(1)  # nosec B311  # The draws are a sample, not a secret.
    chunk = _FILE // pattern.leads
    scatters = [draw.randint(*pattern.scatter) for _ in range(pattern.leads)]
    turns = [draw.randint(*pattern.turn) for _ in range(pattern.leads)]
    within = [chunk // 2] * pattern.leads
    done = 0
    while True:
        for lead in range(pattern.leads):
            half = scatters[lead] // 2
            for _ in range(turns[lead]):
                offset = lead * chunk + within[lead] + draw.randint(-half, half)
                yield min(max(offset, 0), _FILE - _PAGE)
                done += 1
                if done == pattern.operations:
                    return
            within[lead] = (within[lead] + pattern.advance) % chunk
        if pattern.operations == 0:
            return
