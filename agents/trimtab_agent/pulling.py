"""`trimtab-agent pull`: a component that was written in the service, looked at and installed by its administrator."""

import difflib
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from trimtab_agent.components.definition import Definition
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import find_files, load
from trimtab_agent.components.reader import Reader
from trimtab_agent.components.schema import Component
from trimtab_agent.config import Config
from trimtab_agent.control_plane import ControlPlane, WrittenComponent
from trimtab_agent.credentials import Credentials
from trimtab_agent.errors import ComponentError, ConfigError, Problem
from trimtab_agent.supervisor.files import sync_folder, write_atomically

NAME = "component.yaml"


async def fetch(config: Config, credentials: Credentials, name: str, digest: str) -> WrittenComponent:
    """The text as the service has it. Raises CallError; ConfigError where it is not what was asked for."""
    async with ControlPlane(config, "", "", (), credentials) as control:
        written = await control.component_file(name, digest)
    found = hashlib.sha256(written.text.encode()).hexdigest()
    if written.name != name or found != written.digest or not found.startswith(digest):
        raise ConfigError(f"the service sent {written.name!r} with digest {found[:12]}, not what was asked for")
    return written


def install(
    written: WrittenComponent, folder: Path, generator: Generator, consent: Callable[[], bool]
) -> Component | None:
    """Shows the text, or how it differs from what is installed, and writes it when there is consent; else None.

    Nothing of it is run before that, and nothing is written that the agent could not load.

    Raises:
        ComponentError: with every fault of the text, or of what it refers to.
        ConfigError: the folder cannot be written.
    """
    _expect_sound(written)
    target = _place(folder, written.name)
    old = target.read_text(encoding="utf-8") if target.is_file() else None
    author = _shown(written.author).replace("\n", " ")
    print(f"# {written.name}, version {written.number} by {author}, digest {written.digest}")
    if old == written.text:
        print(f"# {target} says so already")
        return load(target, generator)
    print(_shown(_difference(old, written.text, target)), end="")
    if not consent():
        return None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # beside the files that it refers to, under a name that no agent takes for a component
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
    print(f"installed {target}")
    return component


def ask() -> bool:
    """Asks who sits at the terminal. Raises ConfigError where nobody does."""
    if not sys.stdin.isatty():
        raise ConfigError("there is nobody to ask whether to install this: look at it, and give --yes")
    return input("Install it? What its commands do, they do on this cluster. [y/N] ").strip().lower() in ("y", "yes")


def _expect_sound(written: WrittenComponent) -> None:
    """Raises ComponentError for a text that no folder could make a component."""
    reader = Reader(f"{written.name}/{NAME}")
    top = reader.parse(written.text)
    if top is not None:
        component = Definition(Path(NAME), written.text, reader, top).read()
        if component.name != written.name:
            reader.problems.append(Problem(reader.label, 1, "name", f"{component.name!r} is not {written.name!r}"))
    if reader.problems:
        raise ComponentError(reader.problems)


def _place(folder: Path, name: str) -> Path:
    """The file of this component, whatever it is called; where it is to be, if there is none."""
    if folder.is_file():
        raise ConfigError(f"--components {folder} is a file: give the folder of the agent's components")
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


def _shown(text: str) -> str:
    """The text with everything visible: nothing in it can move a cursor or turn the direction of letters."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
