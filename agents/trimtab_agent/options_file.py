"""The options of the command line in a file, `trimtab-agent.toml`.

A key is an option without its dashes: `server = "tune.example.org:443"`, `slots = 4`, `label = ["rack=7"]`. An option
on the command line replaces the one of the file; one that can be repeated adds to it.
"""

import argparse
import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trimtab_agent.errors import ConfigError

OPTION = "--config"
VARIABLE = "TRIMTAB_AGENT_CONFIG"
SYSTEM = Path("/etc/trimtab/trimtab-agent.toml")
# A token in a file that many may read is no secret; --enrol-file names a file of its own.
_NOT_IN_FILE = ("config", "enrol", "help", "version")
# What a command is about, which belongs on the command line.
_NOT_OPTIONS = (argparse._HelpAction, argparse._SubParsersAction, argparse._VersionAction)


def find(arguments: Sequence[str]) -> Path | None:
    """Return the file of options: of --config, of the environment, or the one of this machine; None without any.

    Raises:
        ConfigError: the file that is named does not exist.
    """
    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    reader.add_argument(OPTION)
    named = reader.parse_known_args(arguments)[0].config or os.environ.get(VARIABLE)
    if named is None:
        return SYSTEM if SYSTEM.is_file() else None
    path = Path(named)
    if not path.is_file():
        raise ConfigError(f"{OPTION} {path} is not a file")
    return path


def apply(path: Path, command: argparse.ArgumentParser, all_commands: Sequence[argparse.ArgumentParser]) -> None:
    """Make the options of a file the defaults of a command. Options of other commands are ignored.

    Raises:
        ConfigError: the file cannot be read or may be written by others, or an option is unknown or has a wrong value.
    """
    content = _read(path)
    known = {name for parser in all_commands for name, _ in _options(parser)}
    for name in content:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"{path}: {name!r} is not an option.{hint} Allowed: {', '.join(sorted(known))}")
    for name, action in _options(command):
        if name in content:
            action.default = _value(path, name, action, content[name])
            action.required = False


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_mode & 0o022:
            raise ConfigError(f"{path} can be written by its group or by others. Run: chmod go-w {path}")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yield the options of a command by their names without dashes."""
    for action in parser._actions:
        names = [one.removeprefix("--") for one in action.option_strings if one.startswith("--")]
        if names and not isinstance(action, _NOT_OPTIONS) and names[0] not in _NOT_IN_FILE:
            yield names[0], action


def _value(path: Path, name: str, action: argparse.Action, given: object) -> object:
    if action.nargs == 0:
        if not isinstance(given, bool):
            raise ConfigError(f"{path}: {name} = {given!r} is not true or false")
        return given
    if isinstance(action, argparse._AppendAction):
        items = given if isinstance(given, list) else [given]
        return [_scalar(path, name, action, item) for item in items]
    return _scalar(path, name, action, given)


def _scalar(path: Path, name: str, action: argparse.Action, given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise ConfigError(f"{path}: {name} = {given!r} is not a text or a number")
    if action.choices is not None and given not in action.choices:
        raise ConfigError(f"{path}: {name} = {given!r} is not one of {', '.join(map(str, action.choices))}")
    kind: Any = action.type or str
    try:
        return kind(str(given))
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"{path}: {name}: {error}") from None
    except ValueError:
        raise ConfigError(f"{path}: {name} = {given!r} is not a value of --{name}, {action.metavar}") from None
