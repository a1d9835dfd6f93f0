"""Recipes: what a service renders is what the agent would run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.factories.component_texts import FILES, FULL
from trimtab_agent import shipped
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_components import arguments, recipe
from trimtab_components.schema import Component

PLACES = {"work": "/w", "component": "/c", "build": "/b"}

SWITCHES = """
name: switches
parameters:
  aof: {type: boolean, default: false, on: "yes", off: "no"}
  half: {type: boolean, default: true, on: "1", off: "", env: HALF}
  fast: {type: boolean, default: true, flag: "--fast={value}", on: always, off: never}
  plain: {type: boolean, default: true, env: PLAIN}
templates: [{source: t.in, target: redis.conf}]
applications:
  main: {command: [server, "{aof}"]}
"""


@pytest.fixture
def component(tmp_path: Path) -> Callable[..., Component]:
    def make(text: str, **files: str) -> Component:
        for name, content in {"component__yaml": text, **files}.items():
            (tmp_path / name.replace("__", ".")).write_text(content)
        return load(tmp_path / "component.yaml", Generator(tmp_path / "generated"))

    return make


def rendered(component: Component, **values: object) -> list[object]:
    rendering = arguments.render(component, arguments.effective_values(component, values))  # type: ignore[arg-type]
    return [
        rendering,
        arguments.templates(component, rendering, PLACES),
        arguments.header_commands(component, rendering, PLACES),
        arguments.scheduler_options(component, rendering, PLACES),
        arguments.directives(component, rendering, PLACES),
        [arguments.command_line(component, one, rendering, PLACES) for one in component.applications.values()],
        [arguments.environment(component, one, rendering, PLACES) for one in component.applications.values()],
        arguments.build_commands(component, rendering, PLACES) if component.build else None,
    ]


def test_the_words_of_a_boolean_replace_its_placeholder_everywhere(component: Callable[..., Component]) -> None:
    made = component(SWITCHES, t__in="appendonly ${aof}\nhalf ${half}\n")
    shown = arguments.render(made, arguments.effective_values(made, {"fast": False}))
    assert arguments.templates(made, shown, PLACES) == {"redis.conf": "appendonly no\nhalf 1\n"}
    assert arguments.command_line(made, made.applications["main"], shown, PLACES) == ["server", "no", "--fast=never"]
    assert shown.env == {"HALF": "1", "PLAIN": "true"}
    assert arguments.parse_value(made.parameters["aof"], "yes") is True
    assert arguments.parse_value(made.parameters["aof"], "true") is True


def test_a_recipe_renders_as_its_component(component: Callable[..., Component]) -> None:
    for made, values in (
        (component(FULL, **FILES), {"SIZE": 64, "ratio": 0.25, "fast": True, "mode": 3, "depth": 4, "line": 2}),
        (component(SWITCHES, t__in="appendonly ${aof}\n${half} {x} \u00e4\n"), {"aof": True, "half": False}),
    ):
        sent = recipe.read(recipe.text_of(made))
        assert sent is not None
        assert rendered(sent, **values) == rendered(made, **values)
        assert rendered(sent) == rendered(made)


# The others are live systems, or a program on the machine lists their parameters.
PLAIN = [
    name
    for name, folder in sorted(shipped.workloads().items())
    if not {"live:", "parameters_from:"}
    & {line.strip() for line in (folder / "component.yaml").read_text().split("\n")}
]


@pytest.mark.parametrize("name", PLAIN)
def test_the_recipe_of_a_shipped_component_renders_as_it(name: str, tmp_path: Path) -> None:
    made = load(shipped.workload(name) / "component.yaml", Generator(tmp_path))
    sent = recipe.read(recipe.text_of(made))
    assert sent is not None
    assert rendered(sent) == rendered(made)


def test_a_recipe_has_no_secrets(component: Callable[..., Component]) -> None:
    made = component(
        "name: s\nenv: {API_TOKEN: s3cret-value}\ntemplates: [{source: t.in, target: t}]\n"
        "parameters: {p: {type: int, min: 0, max: 3, default: 0}}\napplications: {main: {command: [run]}}\n",
        t__in="password = hunter22\nport ${p}\n",
    )
    text = recipe.text_of(made, hide_value=lambda name, text: "***" if name in ("API_TOKEN", "password") else text)
    assert "s3cret" not in text
    assert "hunter22" not in text
    sent = recipe.read(text)
    assert sent is not None
    assert sent.env == {"API_TOKEN": "***"}
    shown = arguments.render(sent, arguments.effective_values(sent, {"p": 2}))
    assert arguments.templates(sent, shown, PLACES) == {"t": "password = ***\nport 2\n"}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"component": 3, "templates": []}', '{"component": {"name": "x"}, "templates": []}'],
)
def test_what_is_no_recipe_gives_none(text: str) -> None:
    assert recipe.read(text) is None


def test_a_recipe_without_its_template_gives_none(component: Callable[..., Component]) -> None:
    text = recipe.text_of(component(SWITCHES, t__in="appendonly ${aof}\n"))
    assert recipe.read(text.replace('"templates": ["appendonly', '"x": ["appendonly')) is None
    assert recipe.read(text.replace('["appendonly ${aof}\\n"]', "[]")) is None
