"""How long the two I/O accelerators of the thesis take, as simple models of what chapter 2 says they do.

Each function takes the parameters as arrays that broadcast together and gives seconds of that shape, up to a factor:
`simulators` scales them to the times that the thesis reports. What moves a surface, where its optimum lies and how its
parameters interact follows the descriptions named in each docstring; constants are of our own choosing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc

from service.core.encoding import FloatArray

MB = 1024.0**2


def sbb_bandwidth(
    workers: FloatArray,
    ram_destagers: FloatArray,
    flash_destagers: FloatArray,
    ram_threshold: FloatArray,
    flash_threshold: FloatArray,
) -> FloatArray:
    """A checkpoint of 200 GB through the burst buffer (2.3.3 a, 4.1.1 `SBB.1`): RAM, then NVMe, then Lustre.

    All threads share eight cores, so each pool slows the others: the slowest of the three stages decides. Thresholds
    (fractions) that are too high make incoming data wait for room, those that are too low clean without need.
    """
    load = (workers + ram_destagers + flash_destagers + 2) / 8
    core = 1 / (np.maximum(1, load) ** 0.9 * (1 + 0.05 * np.maximum(0, load - 1) ** 1.5))
    insert = 11.0 * (1 - np.exp(-workers * core / 3.0))
    to_nvme = _least(7.5 * (1 - np.exp(-ram_destagers * core / 3.4)), 6.5)
    to_lustre = _least(3.4 * (1 - np.exp(-flash_destagers * core / 2.6)) / (1 + 0.01 * flash_destagers), 2.6)
    in_ram = 36 * (1 - 2.2 * (ram_threshold - 0.45) ** 2)
    in_nvme = 110 * (1 - 1.4 * (flash_threshold - 0.6) ** 2)
    stages = (200 / insert, (200 - in_ram) / to_nvme, (200 - in_ram - in_nvme) / to_lustre)
    slowest = sum(stage**4 for stage in stages) ** 0.25
    waits = 1 + 0.55 * np.maximum(0, ram_threshold - 0.5) ** 1.5 * (6 / to_nvme)
    waits = waits * (1 + 0.22 * np.maximum(0, flash_threshold - 0.6) * np.sqrt(2.5 / to_lustre))
    cleans = 1 + 0.2 * np.maximum(0, 0.5 - ram_threshold) * to_nvme / 5
    cleans = cleans * (1 + 0.15 * np.maximum(0, 0.6 - flash_threshold))
    return np.asarray(10 + slowest * waits * cleans)


def sbb_latency(
    polling: FloatArray, workers: FloatArray, ram_destagers: FloatArray, cache: FloatArray, threshold: FloatArray
) -> FloatArray:
    """Small reads and writes of 32 processes (2.3.3 b, 4.1.1 `SBB.2`).

    RDMA polling threads and workers must keep up with many requests, while all threads share the cores. Data is used
    again, so RAM up to the 40 GB of the data set pays, and a low threshold (a fraction) throws some of it away.
    """
    load = (2 * polling + workers + ram_destagers) / 24
    slower = 1 + 0.6 * np.maximum(0, load - 0.75) ** 2 + 0.1 * load
    front_end = 0.45 / (1 - np.exp(-polling / 2.2)) + 0.55 / (1 - np.exp(-workers / 6.0))
    locks = 1 + 0.012 * np.maximum(0, ram_destagers - 8) + 0.05 * np.maximum(0, 6 - ram_destagers)
    hits = np.minimum(1, cache * (0.55 + 0.45 * threshold) / 40) ** 0.8
    misses = 2.2 * (1 - hits) * (1 + 0.025 * np.maximum(0, 8 - ram_destagers))
    return np.asarray(front_end * slower * locks + misses)


def sbb_shared(workers: FloatArray, destagers: FloatArray, cache: FloatArray, threshold: FloatArray) -> FloatArray:
    """A checkpoint of 174 GB by IOR (5.5.2): best with ten workers, eight destagers, 60 GB, emptied from 50 % on."""
    insert = 1 / (1 - np.exp(-(workers + 0.6) / 4.0))
    drain = 1 / (1 - np.exp(-(destagers + 0.8) / 3.6))
    crowd = 1 + 0.004 * np.maximum(0, workers - 10) ** 1.5 + 0.013 * np.maximum(0, destagers - 8) ** 1.2
    crowd = crowd + 0.002 * np.maximum(0, workers + destagers - 18) ** 1.5
    small = 1 + 0.0042 * (60 - cache) * (1 + 1.2 * (drain - 1))
    late = 1 + (0.088 + 0.26 * (drain - 1)) * ((threshold - 0.5) / 0.4) ** 1.2
    return np.asarray((0.45 + 0.33 * insert + 0.22 * drain) * crowd * small * late)


@dataclass(frozen=True)
class Pattern:
    """What the `fakeapp` reads (table 2.2), and from where.

    `operations` in all, around `leads` hotspots of a `scatter` in bytes; `stay`: operations at a hotspot before the
    next (1: they take turns). Several of scatter or stay: equally frequent. `miss`, `hit`: seconds of an operation that
    finds its data in the cache or not; `seek` and `bandwidth` (bytes a second): of a prefetch.
    """

    operations: float
    leads: int
    scatter: Sequence[float]
    stay: Sequence[float]
    miss: float
    bandwidth: float
    hit: float = 4e-6
    seek: float = 3e-4
    scan: float = 2e-8


def sro(
    pattern: Pattern, threshold: FloatArray, binsize: FloatArray, prefetch: FloatArray, sequence: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The Small Read Optimizer (2.2.1): seconds, and bytes that it prefetched.

    A zone of `binsize` bytes that holds `threshold` of the last `sequence` accesses has `prefetch` bytes loaded around
    it. Accesses to a hotspot fall evenly over it, so the number in a zone is a Poisson variable; what is loaded covers
    its hotspot step by step. The longer the record, the more work at each access; zones that do not divide the
    prefetched range read a part twice.
    """
    shape = np.broadcast(threshold, binsize, prefetch, sequence).shape
    seconds, loaded = np.zeros(shape), np.zeros(shape)
    kinds = [(scatter, stay) for scatter in pattern.scatter for stay in pattern.stay]
    for scatter, stay in kinds:
        together = stay > 1
        recorded = np.minimum(sequence, stay) if together else sequence / pattern.leads
        triggered = gammainc(threshold, recorded * np.minimum(binsize / scatter, 1))
        growth = triggered * np.minimum(prefetch / scatter, 1)
        growth = growth * (stay if together else pattern.operations / pattern.leads)
        # the mean of exp(-growth * x) over x in [0, 1]: what is not covered yet
        missed = np.where(growth > 1e-9, -np.expm1(-growth) / np.maximum(growth, 1e-9), 1.0)
        fetched = missed * triggered
        wasted = np.where(prefetch % binsize == 0, 1.0, 1.05)
        seconds += missed * pattern.miss + (1 - missed) * pattern.hit
        seconds += fetched * (pattern.seek + wasted * prefetch / pattern.bandwidth)
        loaded += fetched * wasted * prefetch
    seconds = pattern.operations * (seconds / len(kinds) + pattern.scan * sequence)
    return seconds, pattern.operations * loaded / len(kinds)


def _least(a: FloatArray, b: float) -> FloatArray:
    """Nearly the smaller of the two, without an edge."""
    return np.asarray((a**-4.0 + b**-4.0) ** -0.25)
