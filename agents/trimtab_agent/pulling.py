"""`trimtab-agent pull`: show a component that was written in the service, and install it."""

import difflib
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import find_files, load
from trimtab_agent.config import Config
from trimtab_agent.control_plane import ControlPlane, WrittenComponent
from trimtab_agent.credentials import Credentials
from trimtab_agent.errors import ComponentError, ConfigError
from trimtab_agent.files import sync_folder, write_atomically
from trimtab_components.definition import Definition
from trimtab_components.errors import Problem
from trimtab_components.reader import Reader
from trimtab_components.schema import Component
from trimtab_components.terminal import on_one_line, write

NAME = "component.yaml"


async def fetch(config: Config, credentials: Credentials, name: str, digest: str) -> WrittenComponent:
    """Return the text from the service. Raises CallError, or ConfigError if it is another text."""
    async with ControlPlane(config, "", "", (), credentials) as control:
        written = await control.component_file(name, digest)
    found = hashlib.sha256(written.text.encode()).hexdigest()
    if written.name != name or found != written.digest or digest not in ("", found):
        raise ConfigError(
            f"the service sent {written.name!r} with digest {found[:12]} instead of the requested file. "
            "Nothing was installed. Compare the name and the digest with the console, and try again."
        )
    return written


def install(
    written: WrittenComponent, folder: Path, generator: Generator, consent: Callable[[], bool]
) -> Component | None:
    """Show the text, or its difference from the installed file; write it if there is consent, else return None.

    Nothing of it runs before that, and nothing is written that the agent could not load.

    Raises:
        ComponentError: the text or a file that it refers to has errors; all are listed.
        ConfigError: the folder cannot be written.
    """
    _expect_sound(written)
    target = _place(folder, written.name)
    old = target.read_text(encoding="utf-8") if target.is_file() else None
    author = on_one_line(written.author)
    write(f"# {written.name}, version {written.number} by {author}, digest {written.digest}")
    if old == written.text:
        write(f"# {target} already has this content")
        return load(target, generator)
    write(_difference(old, written.text, target), end="")
    if not consent():
        return None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the folder of the files that it refers to, under a name that no agent takes for a component.
        trial = target.with_name(f".{target.name}.{os.getpid()}.new")
        try:
            write_atomically(trial, written.text.encode())
            component = load(trial, generator)
            trial.chmod(0o644)
            trial.replace(target)
        finally:
            trial.unlink(missing_ok=True)
        sync_folder(target.parent)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error}") from None
    write(f"installed {target}")
    return component


def ask() -> bool:
    """Ask the person at the terminal for consent. Raises ConfigError if there is no terminal."""
    if not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask for confirmation: read the text above, then use --yes")
    return input("Install it? Its commands will run on this cluster. [y/N] ").strip().lower() in ("y", "yes")


def _expect_sound(written: WrittenComponent) -> None:
    """Raise ComponentError for a text with errors that do not depend on its folder."""
    reader = Reader(f"{written.name}/{NAME}")
    top = reader.parse(written.text)
    if top is not None:
        component = Definition(Path(NAME), written.text, reader, top).read()
        if component.name != written.name:
            reader.problems.append(Problem(reader.label, 1, "name", f"{component.name!r} must be {written.name!r}"))
    if reader.problems:
        raise ComponentError(reader.problems)


def _place(folder: Path, name: str) -> Path:
    """Return the file of this component, whatever its name, or the path for a new one."""
    if folder.is_file():
        raise ConfigError(f"--components {folder} is a file: give the agent's components folder")
    for file in find_files(folder):
        top = Reader(str(file)).parse(file.read_text(encoding="utf-8", errors="replace"))
        if top is not None and top.text("name") == name:
            return file
    return folder.absolute() / name / NAME


def _difference(old: str | None, new: str, target: Path) -> str:
    if old is None:
        return new if new.endswith("\n") else new + "\n"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(target), "the new version", lineterm="")
    return "\n".join(lines) + "\n"
