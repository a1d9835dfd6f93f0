"""The commands, environment and scheduler options that the agent made of a configuration, for people to see.

They leave the machine, so secrets are hidden: the values of variables and options whose names suggest a secret,
wherever these values appear, and text that looks like a token, a key or a password in an address.
"""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab_agent.runners.base import BuildSpec, JobSpec

HIDDEN = "***"
# Maximum characters of one text, of a script, and in total. Cut text ends with CUT.
TEXT_LENGTH = 4000
SCRIPT_LENGTH = 32_000
TOTAL_LENGTH = 100_000
CUT = " [...]"

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|credential|(?<![a-z])(token|pass|pwd)(?![a-z])|(api|access|private|auth)[-_]?key",
    re.IGNORECASE,
)
# Names of working directories, and of paths to secrets.
_NO_SECRET = re.compile(r"^(OLD)?PWD$|[_-](file|path|dir)$", re.IGNORECASE)
# Secrets in any text: tokens of the service, of identity providers and of others, passwords in URLs.
_SECRETS = (
    re.compile(r"\btr[mae]_[0-9A-Za-z]{8,}"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),
    re.compile(r"(?<=[Bb]earer )\S+"),
    re.compile(r"(?<=://)[^\s:/@]*:[^\s/@]+(?=@)"),
)
# A shorter value may be an ordinary word.
_SHORTEST_SECRET = 6


@dataclass(frozen=True)
class Command:
    """A command. `step` is build, header or command. `environment` has what component and trial set."""

    step: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Invocation:
    """All commands of a trial. `folder` is the application's working directory, `host` the agent's machine."""

    commands: Sequence[Command]
    folder: str
    host: str
    script: str = ""
    scheduler_options: Sequence[str] = ()


# What would run, or a sentence that says why it would not run.
Rendered = Invocation | str


def of(spec: JobSpec, script: str) -> Invocation:
    """Return what a job runs, without secrets and bounded in length. `script` is the batch script, or ""."""
    hide = _Hiding(spec.env)
    commands = []
    if spec.build:
        commands += [Command("build", argv, _own(spec.build)) for argv in spec.build.commands]
    commands += [Command("header", argv) for argv in spec.header]
    commands.append(Command("command", spec.command, _own(spec)))
    limit = _Limit()
    # The application's command comes first: if not everything fits, it matters most.
    shown = [
        Command(
            one.step,
            limit.texts(hide.arguments(one.argv)),
            dict(limit.pairs({name: hide.value(name, text) for name, text in one.environment.items()})),
        )
        for one in reversed(commands)
    ]
    return Invocation(
        commands=[one for one in reversed(shown) if one.argv],
        folder=limit.text(hide.text(spec.cwd)),
        host=socket.gethostname(),
        scheduler_options=limit.texts(hide.arguments(spec.scheduler_options)),
        script=limit.text(hide.text(script), SCRIPT_LENGTH),
    )


def secrets(environment: Mapping[str, str]) -> set[str]:
    """Return the values of the variables whose names suggest a secret."""
    return {text for name, text in environment.items() if _is_secret(name) and len(text) >= _SHORTEST_SECRET}


def hidden(argv: Sequence[str]) -> list[str]:
    """Return the arguments of a command without secrets."""
    return list(_Hiding({}).arguments(argv))


def shown_value(name: str, text: str) -> str:
    """Return the value of a variable or of a setting, hidden if the name suggests a secret."""
    return _Hiding({}).value(name, text)


def masked(spec: JobSpec) -> list[list[list[str]]]:
    """Return the command lines of a job that contain secrets, each with its masked form."""
    hide = _Hiding(spec.env)
    commands = [*(spec.build.commands if spec.build else ()), *spec.header, spec.command]
    pairs = [[list(argv), list(hide.arguments(argv))] for argv in commands]
    return [[argv, shown] for argv, shown in pairs if argv != shown]


def renamed(shown: Invocation, folder: str, name: str) -> Invocation:
    """Return the invocation with a folder's path replaced everywhere."""

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
    """Hides secrets in texts, including the values of variables in `environment` with secret names."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # The longest first, because one may be the beginning of another.
        self._known = sorted(secrets(environment), key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        for pattern in _SECRETS:
            text = pattern.sub(HIDDEN, text)
        return text

    def value(self, name: str, text: str) -> str:
        """Return the value of a variable, hidden if the name suggests a secret."""
        return HIDDEN if text and _is_secret(name) else self.text(text)

    def arguments(self, argv: Sequence[str]) -> Iterator[str]:
        """Yield the arguments, with secrets hidden in `--password=x`, `PASSWORD=x` and `--password x`."""
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


class _Limit:
    """Cuts texts so that they fit into the total length."""

    def __init__(self) -> None:
        self._left = TOTAL_LENGTH

    def text(self, text: str, most: int = TEXT_LENGTH) -> str:
        text = text.replace("\0", "")
        most = min(most, self._left)
        if len(text) > most:
            text = text[: most - len(CUT)] + CUT if most > len(CUT) else ""
        # An empty text counts too.
        self._left = max(0, self._left - len(text) - 1)
        return text

    def texts(self, items: Iterator[str]) -> list[str]:
        found: list[str] = []
        for item in items:
            if not self._left:
                # A list of which nothing fits is omitted.
                return [*found, CUT.strip()] if found else []
            found.append(self.text(item))
        return found

    def pairs(self, items: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for name, text in items.items():
            if self._left:
                yield self.text(name), self.text(text)


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None and not _NO_SECRET.search(name)
