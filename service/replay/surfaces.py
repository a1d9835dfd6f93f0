"""Simple models of the times of the two I/O accelerators in [robert-2021, chapter 2].

Each function takes the parameters as arrays that broadcast together and returns seconds of that shape, up to a factor:
`simulators` scales them to the reported times. The effects of parameters, the place of the optimum and the interactions
follow the sections of [robert-2021] that each docstring names; the constants are our own choice.
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
    """Return the time of a 200 GB checkpoint through RAM, NVMe and Lustre (sections 2.3.3 a and 4.1.1 `SBB.1`).

    All threads share eight cores, so each pool slows the others, and the slowest of the three stages decides. With
    thresholds (fractions) that are too high, incoming data waits for space; with too low ones, data is moved too early.
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
    """Return the time of small reads and writes of 32 processes (sections 2.3.3 b and 4.1.1 `SBB.2`).

    RDMA polling threads and workers must handle many requests, while all threads share the cores. Data is reused, so
    RAM is useful up to the 40 GB of the data set, and a low threshold (a fraction) discards some of it.
    """
    load = (2 * polling + workers + ram_destagers) / 24
    slower = 1 + 0.6 * np.maximum(0, load - 0.75) ** 2 + 0.1 * load
    front_end = 0.45 / (1 - np.exp(-polling / 2.2)) + 0.55 / (1 - np.exp(-workers / 6.0))
    locks = 1 + 0.012 * np.maximum(0, ram_destagers - 8) + 0.05 * np.maximum(0, 6 - ram_destagers)
    hits = np.minimum(1, cache * (0.55 + 0.45 * threshold) / 40) ** 0.8
    misses = 2.2 * (1 - hits) * (1 + 0.025 * np.maximum(0, 8 - ram_destagers))
    return np.asarray(front_end * slower * locks + misses)


def sbb_shared(workers: FloatArray, destagers: FloatArray, cache: FloatArray, threshold: FloatArray) -> FloatArray:
    """Return the time of a 174 GB checkpoint by IOR (section 5.5.2).

    The best is ten workers, eight destagers, a cache of 60 GB and a threshold of 50 %.
    """
    insert = 1 / (1 - np.exp(-(workers + 0.6) / 4.0))
    drain = 1 / (1 - np.exp(-(destagers + 0.8) / 3.6))
    crowd = 1 + 0.004 * np.maximum(0, workers - 10) ** 1.5 + 0.013 * np.maximum(0, destagers - 8) ** 1.2
    crowd = crowd + 0.002 * np.maximum(0, workers + destagers - 18) ** 1.5
    small = 1 + 0.0042 * (60 - cache) * (1 + 1.2 * (drain - 1))
    late = 1 + (0.088 + 0.26 * (drain - 1)) * ((threshold - 0.5) / 0.4) ** 1.2
    return np.asarray((0.45 + 0.33 * insert + 0.22 * drain) * crowd * small * late)


@dataclass(frozen=True)
class Pattern:
    """The reads of the `fakeapp` (table 2.2) and the properties of its storage.

    There are `operations` in total, around `leads` hotspots with a `scatter` in bytes. `stay`: the number of operations
    at a hotspot before the next one (1: the hotspots take turns). Several values of scatter or stay are equally
    frequent. `miss`, `hit`: seconds of an operation without and with its data in the cache. `seek` and `bandwidth`
    (bytes per second): those of a prefetch.
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
    """Return the seconds and the prefetched bytes of the Small Read Optimizer (section 2.2.1).

    If a zone of `binsize` bytes has `threshold` of the last `sequence` accesses, `prefetch` bytes around it are loaded.
    Accesses to a hotspot are uniform, so their number in a zone is a Poisson variable, and the loaded ranges cover the
    hotspot step by step. A longer record needs more work at each access. If zones do not divide the prefetched range,
    a part is read twice.
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
        # The mean of exp(-growth * x) over x in [0, 1] is the share that is not covered yet.
        missed = np.where(growth > 1e-9, -np.expm1(-growth) / np.maximum(growth, 1e-9), 1.0)
        fetched = missed * triggered
        wasted = np.where(prefetch % binsize == 0, 1.0, 1.05)
        seconds += missed * pattern.miss + (1 - missed) * pattern.hit
        seconds += fetched * (pattern.seek + wasted * prefetch / pattern.bandwidth)
        loaded += fetched * wasted * prefetch
    seconds = pattern.operations * (seconds / len(kinds) + pattern.scan * sequence)
    return seconds, pattern.operations * loaded / len(kinds)


def _least(a: FloatArray, b: float) -> FloatArray:
    """Return a smooth approximation of the smaller one."""
    return np.asarray((a**-4.0 + b**-4.0) ** -0.25)
