"""The workloads that ship with the agent: in a wheel within this package, in a checkout next to it."""

from pathlib import Path

from trimtab_agent.errors import ConfigError

PACKAGE = Path(__file__).resolve().parent


def workloads() -> dict[str, Path]:
    """Return the folder of each workload by its name."""
    places = (PACKAGE / "workloads", PACKAGE.parent / "workloads")
    files = next((found for place in places if (found := sorted(place.glob("*/component.yaml")))), [])
    return {file.parent.name: file.parent for file in files}


def workload(name: str) -> Path:
    """Return the folder of one workload. Raises ConfigError if there is none with this name."""
    found = workloads()
    if name not in found:
        raise ConfigError(f"no workload {name!r} ships with the agent. Use one of: {', '.join(found)}.")
    return found[name]
