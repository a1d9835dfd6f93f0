"""The components that are installed here, and those that their administrator installs while the agent runs."""

from collections.abc import Mapping
from pathlib import Path

from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import find_files, load_all
from trimtab_agent.components.schema import Component
from trimtab_agent.policy import Policy


class Installed:
    """Component files as they were read last.

    `components` is another mapping after each `renew`, and none of them ever changes: threads that prepare runs keep
    the one that they began with.
    """

    def __init__(self, location: Path, generator: Generator) -> None:
        """Raises ComponentError."""
        self._location = location
        self._generator = generator
        self._seen = self._look()
        self.components: Mapping[str, Component] = load_all(location, generator)

    def changed(self) -> bool:
        """Whether a component file has come, gone or been written since it was asked last."""
        now = self._look()
        changed = now != self._seen
        self._seen = now
        return changed

    def renew(self, policy: Policy) -> None:
        """Read all files anew. Raises ComponentError, and ConfigError where none may be offered: then all stays."""
        read = load_all(self._location, self._generator)
        policy.offered(read)
        self.components = read

    def _look(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for file in find_files(self._location):
            try:
                status = file.stat()
            except OSError:  # it has just gone
                continue
            found[file] = (status.st_mtime_ns, status.st_size)
        return found
