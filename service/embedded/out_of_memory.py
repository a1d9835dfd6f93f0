"""How often the kernel has killed a process of this machine because memory was short."""

from pathlib import Path

_COUNTERS = Path("/proc/vmstat")


def kills() -> int | None:
    """Return the number of such kills since the machine started, in all containers; None if it is not known."""
    try:
        lines = _COUNTERS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
