"""Parameters that a program of the component lists: a compiler's flags, for example, as the installed compiler has
them."""

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trimtab_agent.components import identity, placeholders
from trimtab_agent.components.environment import inherited
from trimtab_agent.supervisor.files import write_atomically


class GeneratorError(Exception):
    """The program did not give a list of parameters; `str()` says why."""


class Generator:
    """Runs such programs, and keeps the answer of those that name what it depends on."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def run(self, file: Path, command: Sequence[str], timeout: float, depends: Sequence[str]) -> str:
        """What the program prints: JSON text.

        Args:
            file: the component's file.
            command: argv, with `{component}` for the file's folder.
            timeout: seconds.
            depends: programs and files that the answer depends on; none: it is asked every time.

        Raises:
            GeneratorError: it cannot be started, fails, is late, or prints something else.
        """
        argv = [placeholders.render_argument(item, {"component": str(file.parent)}) for item in command]
        entry = self.cache / (self._key(file, argv, depends) + ".json") if depends else None
        if entry is not None and entry.is_file():
            return entry.read_text(encoding="utf-8")
        try:
            done = subprocess.run(
                argv,
                cwd=file.parent,
                env=inherited(os.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
        except OSError as error:
            raise GeneratorError(f"cannot be started: {error}") from None
        except subprocess.TimeoutExpired:
            raise GeneratorError(f"did not end within {timeout:g} seconds") from None
        if done.returncode != 0:
            last = "\n".join(done.stderr.decode(errors="replace").splitlines()[-10:])
            raise GeneratorError(f"ended with exit code {done.returncode}: {last}")
        text = done.stdout.decode(errors="replace")
        try:
            json.loads(text)
        except ValueError as error:
            raise GeneratorError(f"did not print JSON: {error}") from None
        if entry is not None:
            entry.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(entry, text.encode())
        return text

    def _key(self, file: Path, argv: Sequence[str], depends: Sequence[str]) -> str:
        try:
            marks = [identity.of_dependency(name, file.parent) for name in depends]
        except FileNotFoundError as error:
            raise GeneratorError(f"depends: {error}") from None
        return hashlib.sha256(json.dumps([str(file), list(argv), marks]).encode()).hexdigest()
