"""A recipe: the part of a component that turns values into settings, as a text that an agent sends to the service.

It has the keys of a component file, and the texts of the templates. It has no metrics, sources and time-outs. The
service renders settings for people with it, also when no agent offers the component any more. It never sends a command
to an agent.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trimtab_components.definition import Definition
from trimtab_components.reader import Reader, Table
from trimtab_components.schema import Choices, Component, Form, Parameter, Range

_LINE = re.compile(r"^(?P<start>\s*(?:export\s+)?(?P<name>[\w.-]+)(?:\s*[=:]\s*|\s+))(?P<value>\S.*)$", re.MULTILINE)


def text_of(
    component: Component,
    hide: Callable[[Sequence[str]], Sequence[str]] = tuple,
    hide_value: Callable[[str, str], str] = lambda name, text: text,
) -> str:
    """Return the recipe of a component.

    Args:
        component: the component, which has no `live`.
        hide: returns the arguments of a command without secrets.
        hide_value: returns the value of a variable or of a line `NAME VALUE`, hidden if the name suggests a secret.
    """
    variables: Callable[[Mapping[str, str]], dict[str, str]] = lambda env: {  # noqa: E731
        name: hide_value(name, text) for name, text in env.items()
    }
    commands: Callable[[Sequence[Sequence[str]]], list[list[str]]] = lambda found: [  # noqa: E731
        list(hide(command)) for command in found
    ]
    content: dict[str, Any] = {
        "name": component.name,
        "parameters": {name: _parameter(one) for name, one in component.parameters.items()},
        "env": variables(component.env),
        "preload": list(component.preload),
        "header": commands(component.header),
        "templates": [{"source": str(place), "target": one.target} for place, one in enumerate(component.templates)],
        "scheduler": {
            "options": list(component.scheduler_options),
            "directives": list(component.directives),
        },
        "applications": {
            name: {"command": list(hide(one.command)), "env": variables(one.env), "cwd": one.cwd}
            for name, one in component.applications.items()
        },
    }
    if component.settings is not None:
        content["settings"] = asdict(component.settings)
    if component.build is not None:
        content["build"] = {"commands": commands(component.build.commands), "env": variables(component.build.env)}

    def without_secrets(text: str) -> str:
        return _LINE.sub(lambda line: line["start"] + hide_value(line["name"], line["value"]), hide([text])[0])

    texts = [without_secrets(one.text) for one in component.templates]
    return json.dumps({"component": content, "templates": texts}, ensure_ascii=False)


def read(text: str) -> Component | None:
    """Return the component of a recipe; None for a text that is none, for example from another version of an agent."""
    try:
        found = json.loads(text)
        content = json.dumps(found["component"], ensure_ascii=False)
        templates = [str(one) for one in found["templates"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    reader = Reader("recipe")
    top = reader.parse(content)
    if top is None:
        return None
    component = _Sent(Path("component.yaml"), content, reader, top, templates).read()
    return None if reader.problems else component


class _Sent(Definition):
    """The definition of a component whose templates were sent with it."""

    def __init__(self, file: Path, text: str, reader: Reader, top: Table, templates: Sequence[str]) -> None:
        super().__init__(file, text, reader, top)
        self._sent = templates

    def template(self, table: Table, source: Path) -> str | None:
        try:
            return self._sent[int(source.name)]
        except (ValueError, IndexError):
            table.fault("source", "was not sent")
            return None


def _parameter(one: Parameter) -> dict[str, Any]:
    content: dict[str, Any] = {"default": one.default}
    if one.unit:
        content["unit"] = one.unit
    domain = one.domain
    if isinstance(domain, Range):
        content |= {"type": domain.kind, "min": domain.min, "max": domain.max, "log": domain.log}
        content |= {key: grid for key in ("step", "factor") if (grid := getattr(domain, key)) is not None}
    elif isinstance(domain, Choices):
        content |= {"type": "ordinal" if domain.ordered else "categorical", "values": list(domain.values)}
    else:
        content |= {"type": "boolean", "on": one.on, "off": one.off}
    if one.condition is not None:
        content["condition"] = {"parent": one.condition.parent, "values": list(one.condition.values)}
    content["omit_default"] = one.omit_default
    if one.group:
        content["group"] = one.group
    if one.env is not None:
        variable, form = one.env
        content["env"] = {"name": variable, **_variable(form)}
    for key in ("flag", "scheduler", "directive"):
        if (form_of := getattr(one, key)) is not None:
            content[key] = _form(form_of)
    return content


def _variable(form: Form) -> dict[str, str]:
    if form.on is None and form.off is None:
        return {"value": form.items[0]}
    return {key: items[0] for key, items in (("on", form.on), ("off", form.off)) if items is not None}


def _form(form: Form) -> list[str] | dict[str, list[str]]:
    if form.on is None and form.off is None:
        return list(form.items)
    return {key: list(items) for key, items in (("on", form.on), ("off", form.off)) if items is not None}
