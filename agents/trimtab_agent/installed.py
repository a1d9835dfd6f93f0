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

    def __init__(self, location: Path, generator: Generator, *, may_be_empty: bool = False) -> None:
        """Read the component files. Raises ComponentError, also without a file unless there `may_be_empty`."""
        self.location = location
        self.generator = generator
        self._may_be_empty = may_be_empty
        self._seen = self._look()
        self.components: Mapping[str, Component] = self._load()

    def changed(self) -> bool:
        """Return whether a component file was added, removed or written since the last call."""
        now = self._look()
        changed = now != self._seen
        self._seen = now
        return changed

    def renew(self, policy: Policy) -> None:
        """Read all files again. On ComponentError, or ConfigError if none may be offered, nothing changes."""
        read = self._load()
        policy.offered(read)
        self.components = read

    def _load(self) -> Mapping[str, Component]:
        if self._may_be_empty and not find_files(self.location):
            return {}
        return load_all(self.location, self.generator)

    def _look(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for file in find_files(self.location):
            try:
                status = file.stat()
            except OSError:  # removed meanwhile
                continue
            found[file] = (status.st_mtime_ns, status.st_size)
        return found
