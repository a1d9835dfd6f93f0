"""Turn a configuration into argv, environment variables, scheduler options and rendered files.

The agent renders each trial with it, and the service the settings that people take away (`formats`).
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtab_components.errors import NotInComponentError, UnsuitableValueError
from trimtab_components.placeholders import (
    flags_group,
    is_flags,
    names_in_argument,
    render_argument,
    render_arguments,
    render_template,
)
from trimtab_components.schema import (
    Application,
    Choices,
    Component,
    Configuration,
    Parameter,
    Range,
    Scalar,
    Switch,
    as_text,
)


def effective_values(component: Component, given: Configuration) -> dict[str, Scalar]:
    """Return the value of every active parameter: the given value, checked, or the default.

    Raises:
        NotInComponentError: a name is not a parameter's name.
        UnsuitableValueError: the file does not allow a value, or the parameter is not active.
    """
    for name in given:
        if name not in component.parameters:
            raise NotInComponentError(f"component {component.name!r} has no parameter {name!r}")
    known: dict[str, Scalar | None] = {}

    def value_of(parameter: Parameter) -> Scalar | None:
        """Return the value, or None if the parameter is not active. The loader has excluded circular conditions."""
        if parameter.name not in known:
            condition = parameter.condition
            if condition is not None and value_of(component.parameters[condition.parent]) not in condition.values:
                known[parameter.name] = None
            elif parameter.name in given:
                try:
                    known[parameter.name] = parameter.domain.cast(given[parameter.name])
                except UnsuitableValueError as error:
                    raise UnsuitableValueError(f"parameter {parameter.name!r}: {error}") from None
            else:
                known[parameter.name] = parameter.default
        return known[parameter.name]

    values: dict[str, Scalar] = {}
    for name, parameter in component.parameters.items():
        value = value_of(parameter)
        if value is not None:
            values[name] = value
        elif name in given:
            condition = parameter.condition
            assert condition is not None
            wanted = ", ".join(repr(value) for value in condition.values)
            raise UnsuitableValueError(
                f"parameter {name!r} has a value but is active only if {condition.parent!r} is {wanted}"
            )
    return values


def parse_value(parameter: Parameter, text: str) -> Scalar:
    """Parse a value that a person has typed.

    Raises:
        UnsuitableValueError: the parameter does not allow the value.
    """
    domain = parameter.domain
    candidates: list[Scalar] = []
    if isinstance(domain, Range):
        with contextlib.suppress(ValueError):
            candidates = [int(text) if domain.kind == "int" else float(text)]
    else:
        known = domain.values if isinstance(domain, Choices) else (True, False)
        candidates = [value for value in known if text in (as_text(value), parameter.text(value))]
    if not candidates:
        own = {True: parameter.on, False: parameter.off} if isinstance(domain, Switch) else {}
        others = "".join(f", or {word}" for word in own.values() if word and word not in ("true", "false"))
        raise UnsuitableValueError(f"parameter {parameter.name!r}: {text!r} is not {domain.allowed()}{others}")
    return domain.cast(candidates[0])


@dataclass(frozen=True)
class Rendering:
    """A configuration in all forms in which it reaches the system."""

    texts: Mapping[str, str]
    flags: Mapping[str, Sequence[str]]
    env: Mapping[str, str]
    # for a scheduler: additions to its options, and to each of the component's directives
    options: Sequence[str]
    directives: Sequence[str]


def render(component: Component, values: Configuration) -> Rendering:
    """Render checked values (from `effective_values`) in the forms that the component file defines."""
    flags: dict[str, list[str]] = {}
    env: dict[str, str] = {}
    options: list[str] = []
    directives: list[str] = []
    for name, value in values.items():
        parameter = component.parameters[name]
        if parameter.omit_default and value == parameter.default:
            continue
        if parameter.flag:
            flags.setdefault(parameter.group, []).extend(parameter.written(parameter.flag, value))
        if parameter.env:
            variable, form = parameter.env
            for text in parameter.written(form, value):
                env[variable] = text
        if parameter.scheduler:
            options += parameter.written(parameter.scheduler, value)
        if parameter.directive:
            directives += parameter.written(parameter.directive, value)
    texts = {name: component.parameters[name].text(value) for name, value in values.items()}
    return Rendering(texts, flags, env, options, directives)


def command_line(
    component: Component, application: Application, rendering: Rendering, places: Mapping[str, str]
) -> list[str]:
    """Return the application's argv. Flags without a placeholder anywhere are appended to it."""
    argv = render_arguments(application.command, {**rendering.texts, **places}, rendering.flags)
    everywhere = [*application.command, *(item for command in component.header for item in command)]
    if component.build:
        everywhere += [item for command in component.build.commands for item in command]
    if not any(is_flags(item) and not flags_group(item) for item in everywhere):
        argv += rendering.flags.get("", [])
    return argv


def scheduler_options(component: Component, rendering: Rendering, places: Mapping[str, str]) -> list[str]:
    """Return the scheduler's command-line options."""
    values = {**rendering.texts, **places}
    return [*render_arguments(component.scheduler_options, values, {}), *rendering.options]


def directives(component: Component, rendering: Rendering, places: Mapping[str, str]) -> list[str]:
    """Return the component's directive lines for the head of a batch script."""
    lines = render_arguments(component.directives, {**rendering.texts, **places}, {})
    return [" ".join([line, *rendering.directives]) for line in lines]


def asks(component: Component, rendering: Rendering) -> bool:
    """Return whether the options and directives depend on values, which may then be the cause of a refusal."""
    written = [*component.scheduler_options, *component.directives]
    named = any(name in rendering.texts for item in written for name in names_in_argument(item))
    return named or bool(rendering.options) or bool(component.directives and rendering.directives)


def header_commands(component: Component, rendering: Rendering, places: Mapping[str, str]) -> list[list[str]]:
    """Return the argv of each command that runs before the application."""
    values = {**rendering.texts, **places}
    return [render_arguments(command, values, rendering.flags) for command in component.header]


def build_commands(component: Component, rendering: Rendering, places: Mapping[str, str]) -> list[list[str]]:
    """Return the argv of each command of the build."""
    assert component.build is not None
    values = {**rendering.texts, **places}
    return [render_arguments(command, values, rendering.flags) for command in component.build.commands]


def environment(
    component: Component, application: Application, rendering: Rendering, places: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment variables of the component, then the application, then the parameters."""
    values = {**rendering.texts, **places}
    written = {**component.env, **application.env}
    return {**{name: render_argument(text, values) for name, text in written.items()}, **rendering.env}


def templates(component: Component, rendering: Rendering, places: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each file that is written for a trial, by its path in the work folder."""
    values = {**rendering.texts, **places}
    return {one.target: render_template(one.text, values) for one in component.templates}
