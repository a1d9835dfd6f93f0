"""Parameters that a program of the component lists, for example the flags of the installed compiler."""

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trimtab_agent.components import identity
from trimtab_agent.components.environment import inherited
from trimtab_agent.files import write_atomically
from trimtab_components import placeholders


class GeneratorError(Exception):
    """The program did not list parameters. `str(error)` says why."""


class Generator:
    """Runs such programs, and caches the output of those that name their dependencies."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def run(self, file: Path, command: Sequence[str], timeout: float, depends: Sequence[str]) -> str:
        """Return the output of the program, a JSON text.

        Args:
            file: the component's file.
            command: argv; `{component}` stands for the file's folder.
            timeout: seconds.
            depends: programs and files that the output depends on; none: the program runs every time.

        Raises:
            GeneratorError: the program cannot start, fails, exceeds the time-out, or prints no JSON.
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
