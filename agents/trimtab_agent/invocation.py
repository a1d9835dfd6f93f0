"""What the agent made of a configuration, for people to see: commands, environment, what a scheduler is given.

It leaves the machine, so what may be a secret is hidden in it: values of variables and options whose names say so,
wherever these values stand, and what looks like a token, a key or a password in an address.
"""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab_agent.runners.base import BuildSpec, JobSpec

HIDDEN = "***"
# characters of one text, of a script, and of all of it together; what is longer says so
TEXT_LENGTH = 4000
SCRIPT_LENGTH = 32_000
TOTAL_LENGTH = 100_000
CUT = " [...]"

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|credential|(?<![a-z])(token|pass|pwd)(?![a-z])|(api|access|private|auth)[-_]?key",
    re.IGNORECASE,
)
# where the shell is, and where a secret lies
_NO_SECRET = re.compile(r"^(OLD)?PWD$|[_-](file|path|dir)$", re.IGNORECASE)
# what hides in texts of any name: tokens of the service, of identity providers and of others, passwords in addresses
_SECRETS = (
    re.compile(r"\btr[mae]_[0-9A-Za-z]{8,}"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),
    re.compile(r"(?<=[Bb]earer )\S+"),
    re.compile(r"(?<=://)[^\s:/@]*:[^\s/@]+(?=@)"),
)
# shorter ones are words that may stand anywhere
_SHORTEST_SECRET = 6


@dataclass(frozen=True)
class Command:
    """`step`: build, header or command. `environment`: what component and trial set."""

    step: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Invocation:
    """All of it. `folder` is where the application runs, `host` the agent's machine."""

    commands: Sequence[Command]
    folder: str
    host: str
    script: str = ""
    scheduler_options: Sequence[str] = ()


def of(spec: JobSpec, script: str) -> Invocation:
    """What a job runs, without secrets and bounded in length. `script`: what its scheduler is given, if there is
    one."""
    hide = _Hiding(spec.env)
    commands = []
    if spec.build:
        commands += [Command("build", argv, _own(spec.build)) for argv in spec.build.commands]
    commands += [Command("header", argv) for argv in spec.header]
    commands.append(Command("command", spec.command, _own(spec)))
    room = _Room()
    # the application's own first: where there is no room for all, it is what matters
    shown = [
        Command(
            one.step,
            room.texts(hide.arguments(one.argv)),
            dict(room.pairs({name: hide.value(name, text) for name, text in one.environment.items()})),
        )
        for one in reversed(commands)
    ]
    return Invocation(
        commands=[one for one in reversed(shown) if one.argv],
        folder=room.text(hide.text(spec.cwd)),
        host=socket.gethostname(),
        scheduler_options=room.texts(hide.arguments(spec.scheduler_options)),
        script=room.text(hide.text(script), SCRIPT_LENGTH),
    )


def masked(spec: JobSpec) -> list[list[list[str]]]:
    """The command lines of a job that have secrets in them, each with what is shown in its place."""
    hide = _Hiding(spec.env)
    commands = [*(spec.build.commands if spec.build else ()), *spec.header, spec.command]
    pairs = [[list(argv), list(hide.arguments(argv))] for argv in commands]
    return [[argv, shown] for argv, shown in pairs if argv != shown]


def renamed(shown: Invocation, folder: str, name: str) -> Invocation:
    """The same, with another name for a folder wherever it stands."""

    def other(text: str) -> str:
        return text.replace(folder, name)

    return Invocation(
        commands=[
            Command(one.step, [*map(other, one.argv)], {key: other(text) for key, text in one.environment.items()})
            for one in shown.commands
        ],
        folder=other(shown.folder),
        host=shown.host,
        script=other(shown.script),
        scheduler_options=[*map(other, shown.scheduler_options)],
    )


def _own(spec: BuildSpec | JobSpec) -> Mapping[str, str]:
    return {name: spec.env[name] for name in spec.own_env}


class _Hiding:
    """Hides secrets in texts; those that `environment`, all of a trial's, has under names that say so among them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        known = {text for name, text in environment.items() if _is_secret(name) and len(text) >= _SHORTEST_SECRET}
        # the longest first: one may be the beginning of another
        self._known = sorted(known, key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        for pattern in _SECRETS:
            text = pattern.sub(HIDDEN, text)
        return text

    def value(self, name: str, text: str) -> str:
        """The value of a variable."""
        return HIDDEN if text and _is_secret(name) else self.text(text)

    def arguments(self, argv: Sequence[str]) -> Iterator[str]:
        """`--password=x`, `PASSWORD=x`, and `--password x`."""
        expected = False
        for item in argv:
            name, separator, rest = item.partition("=")
            secret = _is_secret(name) and not re.search(r"\s", name)
            if separator and rest and secret:
                yield f"{name}={HIDDEN}"
            elif expected and not item.startswith("-"):
                yield HIDDEN
            else:
                yield self.text(item)
            expected = secret and not separator and item.startswith("-")


class _Room:
    """How much may still be told."""

    def __init__(self) -> None:
        self._left = TOTAL_LENGTH

    def text(self, text: str, most: int = TEXT_LENGTH) -> str:
        text = text.replace("\0", "")
        most = min(most, self._left)
        if len(text) > most:
            text = text[: most - len(CUT)] + CUT if most > len(CUT) else ""
        # an empty one costs something, too
        self._left = max(0, self._left - len(text) - 1)
        return text

    def texts(self, items: Iterator[str]) -> list[str]:
        found: list[str] = []
        for item in items:
            if not self._left:
                # a list that has no room at all is left out
                return [*found, CUT.strip()] if found else []
            found.append(self.text(item))
        return found

    def pairs(self, items: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for name, text in items.items():
            if self._left:
                yield self.text(name), self.text(text)


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None and not _NO_SECRET.search(name)
