"""Settings as people use them: what a shell reads is what the agent passes."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trimtab_components import recipe
from trimtab_components.definition import Definition
from trimtab_components.formats import Format, NoSuchFormError, render
from trimtab_components.reader import Reader
from trimtab_components.schema import Component, Scalar

ROOT = Path(__file__).resolve().parents[3]
TEXT = """
name: c
parameters:
  threads: {type: int, min: 1, max: 64, default: 2, env: OMP_NUM_THREADS}
  level: {type: categorical, values: [O2, "O3 -g", "$(rm x)"], default: O2, flag: ["--level", "{value}"]}
  aof: {type: boolean, default: false, on: "yes", off: "no", env: {name: AOF, value: "x={value}"}}
env: {WHERE: "{work}/it's"}
applications:
  main: {command: ["{component}/run me", "{threads}"]}
  other: {command: [other], env: {KIND: other}}
"""
VALUES: dict[str, Scalar] = {"threads": 8, "level": "O3 -g", "aof": True}


class _Rendered(Definition):
    def template(self, table: object, source: object) -> str | None:
        return "threads ${threads}\naof ${aof}\n"


def component(text: str = TEXT) -> Component:
    reader = Reader("component.yaml")
    top = reader.parse(text)
    assert top is not None
    made = _Rendered(Path("component.yaml"), text, reader, top).read()
    assert not reader.problems, reader.problems
    return made


def test_variables() -> None:
    shown = render(Format.ENV, VALUES, component())
    assert shown.text == "WHERE=\"$work\"'/it'\"'\"'s'\nOMP_NUM_THREADS=8\nAOF=x=yes\n"
    assert "$work is the folder in which the application runs." in shown.notes
    assert any("These settings are no variables: level. The format command shows them." in note for note in shown.notes)


def test_command_line_of_an_application() -> None:
    made = component()
    shown = render(Format.COMMAND, VALUES, made, "other").text
    assert shown == "WHERE=\"$work\"'/it'\"'\"'s' KIND=other OMP_NUM_THREADS=8 AOF=x=yes other --level 'O3 -g'\n"
    first = render(Format.COMMAND, VALUES, made).text
    assert first.endswith("\"$component\"'/run me' 8 --level 'O3 -g'\n")
    with pytest.raises(NoSuchFormError, match="no application 'third'; it has main, other"):
        render(Format.COMMAND, VALUES, made, "third")


def test_the_file_of_the_program() -> None:
    made = component(TEXT + "templates: [{source: a.in, target: redis.conf}]\n")
    shown = render(Format.TEMPLATE, VALUES, made)
    assert shown.text == "threads 8\naof yes\n"
    assert shown.files == {"redis.conf": shown.text}
    two = component(TEXT + "templates: [{source: a.in, target: a}, {source: a.in, target: b/c}]\n")
    shown = render(Format.TEMPLATE, VALUES, two)
    assert shown.text == ""
    assert list(shown.files) == ["a", "b/c"]
    with pytest.raises(NoSuchFormError, match="has no template"):
        render(Format.TEMPLATE, VALUES, component())


def test_the_file_of_a_program_that_no_template_renders() -> None:
    """A study of two of three parameters: the file says nothing of the third, which the program has by itself."""
    text = TEXT + 'settings: {target: my.cnf, line: "{name} = {value}", head: "[mysqld]"}\n'
    made = component(text)
    shown = render(Format.TEMPLATE, {"threads": 8, "aof": True}, made)
    assert shown.text == "[mysqld]\nthreads = 8\naof = yes\n"
    assert shown.files == {"my.cnf": shown.text}
    sent = recipe.read(recipe.text_of(made))
    assert sent is not None
    assert render(Format.TEMPLATE, {"threads": 8, "aof": True}, sent) == shown
    assert "command and template show them" in render(Format.ENV, VALUES, made).notes[-1]


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ('{target: a, line: "{name}"}', "must be one line with {name} and {value}"),
        ('{target: /etc/a, line: "{name} {value}"}', "must be the name of a file"),
        ('{target: a, line: "{name} {value}"}\ntemplates: [{source: a, target: b}]', "is not needed with templates"),
    ],
)
def test_settings_that_give_no_file(settings: str, fault: str) -> None:
    reader = Reader("component.yaml")
    text = f"{TEXT}settings: {settings}\n"
    top = reader.parse(text)
    assert top is not None
    _Rendered(Path("component.yaml"), text, reader, top).read()
    assert [fault in problem.message for problem in reader.problems] == [True]


@pytest.mark.parametrize("name", ["redis", "mariadb", "postgresql", "sqlite", "kafka-producer", "spark", "nginx-proxy"])
def test_a_shipped_component_of_a_program_with_a_file_gives_its_file(name: str) -> None:
    """A person who has tuned a server wants the server's file, not the command of a benchmark."""
    content = yaml.safe_load((ROOT / "agents/workloads" / name / "component.yaml").read_text())
    assert content.get("settings") or content.get("templates")


def test_without_a_component_each_parameter_has_its_name() -> None:
    values: dict[str, Scalar] = {"inline-limit": 200, "x": 0.1, "on": True, "s": "a b"}
    shown = render(Format.ENV, values, None)
    assert shown.text == "inline_limit=200\nx=0.1\non=true\ns='a b'\n"
    assert any("'inline-limit' is no name of a variable" in note for note in shown.notes)
    assert render(Format.COMMAND, values, None).text == "--inline-limit=200 --x=0.1 --on=true '--s=a b'\n"
    assert render(Format.SET, values, None).text == "--set inline-limit=200 --set x=0.1 --set on=true --set 's=a b'\n"
    with pytest.raises(NoSuchFormError, match="has no template"):
        render(Format.TEMPLATE, values, None)


SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20)
)
NAMES = st.one_of(st.sampled_from(["on", "no", "null", "y", "a-b", "1", "true"]), st.text(min_size=1, max_size=8))


@given(st.dictionaries(NAMES, SCALARS, max_size=6))
def test_yaml_and_json_give_the_values_back(values: dict[str, Scalar]) -> None:
    assert json.loads(render(Format.JSON, values, None).text) == values
    printable = {key: one for key, one in values.items() if all(str(x).isprintable() for x in (key, one))}
    found = yaml.safe_load(render(Format.YAML, printable, None).text or "{}") or {}
    assert found == printable
    assert [type(one) for one in found.values()] == [type(one) for one in printable.values()]


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20))
def test_options_are_one_word_of_a_shell(text: str) -> None:
    assert shlex.split(render(Format.SET, {"s": text}, None).text) == ["--set", f"s={text}"]
    assert shlex.split(render(Format.COMMAND, {"s": text}, None).text) == [f"--s={text}"]


def test_a_shell_reads_the_variables(programs_start: None) -> None:
    text = render(Format.ENV, {**VALUES, "level": "O2"}, component()).text
    script = f'work=/w; {text}\nprintf \'%s|%s\' "$WHERE" "$AOF"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "/w/it's|x=yes"
