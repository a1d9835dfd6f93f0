"""A library that real processes load before the C library, so that a test changes what a system call does."""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.factories.service import require_program


class Preloaded:
    """A library made of C `source`. `variables`: the environment of processes that load it; `folder`: for its files."""

    def __init__(self, name: str, source: str) -> None:
        compiler = require_program("gcc", "gcc")
        # not in a test's own folder: PostgreSQL runs as another user
        self._temporary = tempfile.TemporaryDirectory(prefix=f"trimtab-{name}-")
        self.folder = Path(self._temporary.name)
        self.folder.chmod(0o755)
        library = self.folder / f"{name}.so"
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", str(library), "-ldl"],
            input=source.encode(),
            check=True,
        )
        preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))
        self.variables = {"LD_PRELOAD": preload}

    def close(self) -> None:
        """Remove the library. Processes that have loaded it keep it."""
        self._temporary.cleanup()
