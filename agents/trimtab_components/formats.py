"""Settings in the forms in which people use them: variables, a command line, the file of a program.

`Format` lists the forms. Without a component, the name of each parameter stands for the way in which it reaches the
program.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trimtab_components import arguments
from trimtab_components.placeholders import PLACES, render_argument
from trimtab_components.schema import Application, Component, Configuration, SettingsFile, as_text


class Format(StrEnum):
    """A form of settings."""

    # Variables of the environment, a line NAME='VALUE' for each: for a shell, an EnvironmentFile or --env-file.
    ENV = "env"
    # Options `--set NAME=VALUE`, as `trimtab-agent try` takes them.
    SET = "set"
    YAML = "yaml"
    JSON = "json"
    # The file that the component renders from its template or its `settings`, such as redis.conf.
    TEMPLATE = "template"
    # The command that runs the application, with its variables and its options of the scheduler.
    COMMAND = "command"


@dataclass(frozen=True)
class Rendered:
    """Settings in one form. `files` has the text of each rendered template by its name; of several, `text` has none.
    `notes` are sentences for people."""

    text: str
    files: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


class NoSuchFormError(Exception):
    """The component has no such form. `str(error)` is a sentence for people."""


NAMED = "The study does not know how values reach the measured program. Each parameter is written by its name."
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE_NOTES = {
    "work": "$work is the folder in which the application runs",
    "component": "$component is the folder of the component file",
    "build": "$build is the folder of the build's output",
}
_ASIS = re.compile(r"[A-Za-z_][\w.-]*")
_WORDS = re.compile(r"y|n|yes|no|on|off|true|false|null", re.IGNORECASE)


def render(form: Format, values: Configuration, component: Component | None, application: str = "") -> Rendered:
    """Return the settings in a form.

    Args:
        form: the form.
        values: the value of each active parameter.
        component: how values reach the program; None: nobody knows it.
        application: the application of the component; empty: the first.

    Raises:
        NoSuchFormError: the component has no template, or no such application.
        NotInComponentError: the component has no parameter of such a name.
        UnsuitableValueError: the component does not allow a value.
    """
    if form is Format.JSON:
        return Rendered(json.dumps(dict(values), indent=2, ensure_ascii=False) + "\n")
    if form is Format.YAML:
        return Rendered("".join(f"{_key(name)}: {_yaml(value)}\n" for name, value in values.items()))
    if form is Format.SET:
        items = [f"--set {shlex.quote(f'{name}={as_text(value)}')}" for name, value in values.items()]
        return Rendered(" ".join(items) + "\n")
    if component is None:
        return _by_name(form, values)
    chosen = component.applications.get(application or next(iter(component.applications)))
    if chosen is None:
        raise NoSuchFormError(
            f"Component {component.name!r} has no application {application!r}; it has"
            f" {', '.join(component.applications)}."
        )
    rendering = arguments.render(component, arguments.effective_values(component, values))
    # The shell's own variables stand for the folders of a trial.
    places = {name: f"\0{name}\0" for name in PLACES}
    if form is Format.TEMPLATE:
        return _files(component, rendering, places, values)
    if form is Format.ENV:
        return _variables(component, chosen, rendering, places)
    return _command(component, chosen, rendering, places)


def _by_name(form: Format, values: Configuration) -> Rendered:
    if form is Format.TEMPLATE:
        raise NoSuchFormError(
            "The study does not know how values reach the measured program, so it has no template. Use env, set, yaml,"
            " json or command."
        )
    if form is Format.COMMAND:
        options = [shlex.quote(f"--{name}={as_text(value)}") for name, value in values.items()]
        return Rendered(" ".join(options) + "\n", notes=[NAMED])
    lines, notes = [], [NAMED]
    for name, value in values.items():
        variable = re.sub(r"\W", "_", name, flags=re.ASCII)
        variable = variable if _VARIABLE.fullmatch(variable) else f"_{variable}"
        lines.append(_assignment(variable, as_text(value)))
        if variable != name:
            notes.append(f"{name!r} is no name of a variable, so it is written {variable}.")
    return Rendered("".join(f"{line}\n" for line in lines), notes=notes)


def _files(
    component: Component, rendering: arguments.Rendering, places: Mapping[str, str], values: Configuration
) -> Rendered:
    if component.settings is not None:
        return _settings(component.settings, rendering, values)
    files = arguments.templates(component, rendering, places)
    if not files:
        ways = [
            form
            for form, used in (
                ("env", any(one.env for one in component.parameters.values())),
                ("command", True),
            )
            if used
        ]
        raise NoSuchFormError(f"Component {component.name!r} has no template. Use {' or '.join(ways)}.")
    shown = {name: _named(text) for name, text in files.items()}
    notes = _place_notes(files.values())
    if len(shown) > 1:
        notes = [f"The component has {len(shown)} files: {', '.join(shown)}.", *notes]
    return Rendered(next(iter(shown.values())) if len(shown) == 1 else "", shown, notes)


def _settings(file: SettingsFile, rendering: arguments.Rendering, values: Configuration) -> Rendered:
    """Return the file with a line for each parameter of the study. Others stay as the program has them."""
    lines = [
        file.line.replace("{value}", rendering.texts[name]).replace("{name}", name)
        for name in rendering.texts
        if name in values
    ]
    text = "".join(f"{line}\n" for line in [*([file.head] if file.head else []), *lines])
    return Rendered(text, {file.target: text})


def _variables(
    component: Component, application: Application, rendering: arguments.Rendering, places: Mapping[str, str]
) -> Rendered:
    found = {**_environment(component, application, rendering, places)}
    notes = _place_notes(found.values())
    others = _other_ways(component, rendering)
    if others:
        file = component.templates or component.settings
        ways = "formats command and template show them" if file else "format command shows them"
        notes.append(f"These settings are no variables: {', '.join(others)}. The {ways}.")
    return Rendered("".join(f"{_assignment(name, text)}\n" for name, text in found.items()), notes=notes)


def _other_ways(component: Component, rendering: arguments.Rendering) -> list[str]:
    by_variable = {name for name, one in component.parameters.items() if one.env is not None}
    by_variable |= {
        name
        for name in component.parameters
        for text in [*component.env.values(), *(one for a in component.applications.values() for one in a.env.values())]
        if f"{{{name}}}" in text
    }
    return [name for name in rendering.texts if name not in by_variable]


def _command(
    component: Component, application: Application, rendering: arguments.Rendering, places: Mapping[str, str]
) -> Rendered:
    env = _environment(component, application, rendering, places)
    argv = arguments.command_line(component, application, rendering, places)
    lines = [_argv(one) for one in (arguments.build_commands(component, rendering, places) if component.build else ())]
    lines += [_argv(one) for one in arguments.header_commands(component, rendering, places)]
    lines.append(" ".join([*(_assignment(name, text) for name, text in env.items()), _argv(argv)]))
    options = arguments.scheduler_options(component, rendering, places)
    files = arguments.templates(component, rendering, places)
    directives = arguments.directives(component, rendering, places)
    notes = _place_notes([*env.values(), *argv, *lines])
    if options:
        notes.append(f"Options of the scheduler: {_argv(options)}")
    notes += [f"Line of the batch script: {_named(line)}" for line in directives]
    if files:
        notes.append(f"The command reads {', '.join(files)}: see the format template.")
    return Rendered("".join(f"{line}\n" for line in lines), notes=notes)


def _environment(
    component: Component, application: Application, rendering: arguments.Rendering, places: Mapping[str, str]
) -> dict[str, str]:
    env = arguments.environment(component, application, rendering, places)
    if component.preload:
        preload = [render_argument(item, places) for item in component.preload]
        env["LD_PRELOAD"] = ":".join([*preload, *filter(None, [env.get("LD_PRELOAD")])])
    return env


def _assignment(name: str, text: str) -> str:
    return f"{name}={_quoted(text)}"


def _argv(argv: Sequence[str]) -> str:
    return " ".join(map(_quoted, argv))


def _quoted(text: str) -> str:
    """Return a text as one word of a shell, in which the folders of a trial are variables."""
    if "\0" not in text:
        return shlex.quote(text)
    parts = text.split("\0")
    return "".join(f'"${part}"' if index % 2 else shlex.quote(part) if part else "" for index, part in enumerate(parts))


def _named(text: str) -> str:
    """Return a text with the variable of each folder."""
    return re.sub("\0([a-z]+)\0", r"$\1", text)


def _place_notes(texts: Iterable[str]) -> list[str]:
    joined = "\n".join(texts)
    return [f"{note}." for name, note in _PLACE_NOTES.items() if f"\0{name}\0" in joined or f'"${name}"' in joined]


def _key(name: str) -> str:
    return name if _ASIS.fullmatch(name) and not _WORDS.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _yaml(value: object) -> str:
    """Return a value as YAML; JSON, of which YAML is a superset, but for floats that YAML 1.1 reads as texts."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("e", ".0e") if isinstance(value, float) and "e" in text and "." not in text else text
