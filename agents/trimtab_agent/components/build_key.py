"""The name of a build's output in the cache."""

import hashlib
import json

from trimtab_agent.components import identity
from trimtab_components.arguments import Rendering
from trimtab_components.placeholders import render_argument, render_arguments
from trimtab_components.schema import Component


def build_key(component: Component, rendering: Rendering) -> str:
    """Return the name of this configuration's build output. Configurations that build the same from the same sources
    have the same name.

    Raises:
        FileNotFoundError: a source, or a program that the build depends on, does not exist.
    """
    build = component.build
    assert build is not None
    # The folders stay as placeholders, because the path of the output depends on this key.
    values = {**rendering.texts, **{name: f"{{{name}}}" for name in ("build", "component")}}
    content = {
        "component": component.name,
        "commands": [render_arguments(command, values, rendering.flags) for command in build.commands],
        "env": {name: render_argument(text, values) for name, text in build.env.items()},
        "sources": [
            [str(path.relative_to(component.folder)), hashlib.sha256(path.read_bytes()).hexdigest()]
            for path in build.sources
        ],
        "depends": [identity.of_dependency(name, component.folder) for name in build.depends],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
