"""The workloads that ship with the agent: in a wheel within this package, in a checkout next to it."""

from pathlib import Path

from trimtab_agent.errors import ConfigError
from trimtab_components.definition import read_needs
from trimtab_components.reader import Reader
from trimtab_components.schema import Need

PACKAGE = Path(__file__).resolve().parent
# The module that scripts of components share, which people may copy.
BENCH = "bench.py"


def workloads() -> dict[str, Path]:
    """Return the folder of each workload by its name."""
    places = (PACKAGE / "workloads", PACKAGE.parent / "workloads")
    files = next((found for place in places if (found := sorted(place.glob("*/component.yaml")))), [])
    return {file.parent.name: file.parent for file in files}


def workload(name: str) -> Path:
    """Return the folder of one workload, or the shared module. Raises ConfigError if there is none with this name."""
    found = workloads()
    if name == BENCH and found:
        return next(iter(found.values())).parent / BENCH
    if name not in found:
        raise ConfigError(f"no workload {name!r} ships with the agent. Use one of: {', '.join(found)}.")
    return found[name]


def needs(folder: Path) -> tuple[Need, ...]:
    """Return what a workload needs. Nothing of its file is checked, since its parameters may need the same."""
    top = Reader("").parse((folder / "component.yaml").read_text(encoding="utf-8"))
    return read_needs(top) if top else ()
