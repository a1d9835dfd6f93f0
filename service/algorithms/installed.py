"""The algorithms of other installed packages, which the service finds by their entry points.

The entry point's name is the algorithm's name, and its value is an `Entry`. In the package's `pyproject.toml`:

    [project.entry-points."trimtab.algorithms"]
    my-search = "my_package.entry:ENTRY"
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points

from service.algorithms.entry import Entry
from service.logger import Logger

logger = Logger(__name__)

GROUP = "trimtab.algorithms"


def installed(taken: Collection[str]) -> dict[str, Entry]:
    """Return the entries by name.

    An entry point that cannot be used does not stop the service: it is left out, and a warning says why. The names in
    `taken` cannot be replaced.
    """
    found: dict[str, Entry] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        reason = f"the name {point.name} is taken" if point.name in taken or point.name in found else ""
        entry = None
        if not reason:
            entry, reason = _loaded(point)
        if entry is None:
            package = "?" if point.dist is None else point.dist.name
            logger.warning("an algorithm is left out", algorithm=point.name, package=package, reason=reason)
        else:
            found[point.name] = entry
    return found


def _loaded(point: EntryPoint) -> tuple[Entry | None, str]:
    """Return the entry; without a usable one, None and the reason."""
    try:
        entry = point.load()
    except Exception as error:  # noqa: BLE001 - the import of another package may raise anything
        return None, f"its import failed with {type(error).__name__} ({error})"
    if not isinstance(entry, Entry):
        return None, f"it is a {type(entry).__name__}, not a service.algorithms.entry.Entry"
    if entry.name != point.name:
        return None, f"its entry has another name, {entry.name}"
    return entry, ""
