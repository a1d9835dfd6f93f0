"""The installed components, and changes to them while the agent runs."""

from collections.abc import Mapping
from pathlib import Path

from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import find_files, load_all
from trimtab_agent.policy import Policy
from trimtab_components.schema import Component


class Installed:
    """The component files as of the last read.

    Each `renew` replaces the mapping `components` and never changes an existing one, so that threads that prepare runs
    keep the one that they started with.
    """

    def __init__(self, location: Path, generator: Generator) -> None:
        """Read the component files. Raises ComponentError."""
        self._location = location
        self._generator = generator
        self._seen = self._look()
        self.components: Mapping[str, Component] = load_all(location, generator)

    def changed(self) -> bool:
        """Return whether a component file was added, removed or written since the last call."""
        now = self._look()
        changed = now != self._seen
        self._seen = now
        return changed

    def renew(self, policy: Policy) -> None:
        """Read all files again. On ComponentError, or ConfigError if none may be offered, nothing changes."""
        read = load_all(self._location, self._generator)
        policy.offered(read)
        self.components = read

    def _look(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for file in find_files(self._location):
            try:
                status = file.stat()
            except OSError:  # removed meanwhile
                continue
            found[file] = (status.st_mtime_ns, status.st_size)
        return found
