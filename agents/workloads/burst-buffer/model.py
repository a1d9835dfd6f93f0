"""A model of the stages of sbb-2: requests, memory, file level and directory, each with a rate.

It was written from component.yaml, before it was compared with any measurement.
"""

from collections.abc import Mapping
from typing import Any

_MIB = 1 << 20
# The injected devices of the application: seconds, and bytes a second.
_LEVEL_LATENCY, _LEVEL_BANDWIDTH = 100e-6, 1000e6
_SLOW_LATENCY, _SLOW_BANDWIDTH, _CONTENTION = 1e-3, 200e6, 200e-6
# A request's time of the processor, which grows by this share with each thread; a copy's bytes a second.
_REQUEST, _THREAD, _COPY = 30e-6, 0.02, 400e6
# 32 processes make this many accesses of 4 KiB to a file of 40 MiB. 80 % of a level holds data.
_PROCESSES, _ACCESSES, _BLOCK, _FILE, _USED = 32, 10240, 4096, 40 * _MIB, 0.8


def predict(configuration: Mapping[str, Any], context: Mapping[str, str]) -> float | None:
    """Return the seconds of sbb-2; None for another application."""
    if context["application"] != "sbb-2":
        return None
    memory = configuration["ram-cache-size"] * _MIB * _USED
    level = configuration["flash-cache-size"] * _MIB * _USED
    workers = configuration["worker-threads"]
    written = _FILE / _COPY + max(_FILE - memory, 0.0) / _LEVEL_BANDWIDTH
    missed, beyond = max(1.0 - memory / _FILE, 0.0), max(1.0 - level / _FILE, 0.0)
    busy = min(workers, _PROCESSES)
    from_level = _LEVEL_LATENCY + _BLOCK / _LEVEL_BANDWIDTH
    from_directory = _SLOW_LATENCY + busy * _CONTENTION + _BLOCK / _SLOW_BANDWIDTH
    waiting = missed * ((1.0 - beyond) * from_level + beyond * from_directory) / busy
    processor = _REQUEST * (1.0 + _THREAD * (configuration["polling-threads"] + workers))
    return float(written + _ACCESSES * max(waiting, processor))
