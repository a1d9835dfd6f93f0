"""From values to argv, environment and rendered files: what is passed, in which form, and that nothing else can be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trimtab_agent.components.build_key import build_key
from trimtab_agent.preparation import prepare
from trimtab_agent.runners.base import JobSpec
from trimtab_components import arguments
from trimtab_components.errors import NotInComponentError, UnsuitableValueError
from trimtab_components.placeholders import render_template
from trimtab_components.schema import Component

LoadComponent = Callable[..., Component]

TEXT = """
name: c
parameters:
  n: {type: int, min: 1, max: 8, default: 2, flag: ["-n", "{value}"]}
  f: {type: float, min: 0, max: 1, default: 0.1, env: F}
  on: {type: boolean, default: false, flag: {on: -fon, off: -fno-on}, group: build}
  half: {type: boolean, default: true, flag: {on: [--half, really]}}
  mode:
    {type: categorical, values: [a b, "$(rm -rf /)", "{n}"], default: a b, env: {name: MODE, value: "<{value}>"}}
  deep: {type: int, min: 0, max: 9, default: 5, condition: {parent: on, values: [true]}, flag: "--deep={value}"}
  deeper: {type: int, min: 0, max: 9, default: 6, condition: {parent: deep, values: [7]}, env: DEEPER}
  quiet: {type: ordinal, values: [0, 1, 2], default: 1, flag: "-q{value}", omit_default: true}
  nodes: {type: int, min: 1, max: 4, default: 1, scheduler: "--nodes={value}"}
  ram: {type: int, min: 1, max: 4, default: 1, directive: "ram={value}"}
  word: {type: categorical, values: [x, y], default: x}
build:
  commands: [[cc, "{flags:build}", -o, "{build}/out"]]
env: {STATIC: "in {work}", CHOICE: "{word}"}
preload: ["{component}/lib.so"]
header: [[prepare, "{mode}"]]
scheduler: {options: [--plugin, p], directives: ["#SBB flavor=small"]}
templates: [{source: t.in, target: sub/t}]
applications:
  main:
    {command: ["{build}/out", "{word}", "only{deep}", "{{literal}}"], files: [t.in], env: {STATIC: over}, timeout: 50}
  placed: {command: [run, "{flags}", last]}
"""
FILES = {"t__in": "n ${n}\nkept $HOME $${n}\ndeep ${deep}\nat ${work}\n"}


def make(
    component: LoadComponent,
    tmp_path: Path,
    application: str = "main",
    timeout: float = 0,
    text: str = TEXT,
    **values: Any,
) -> JobSpec:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return prepare(
        component(text, **FILES),
        application,
        values,
        title="t",
        required=["seconds"],
        timeout=timeout,
        work=work,
        cache=tmp_path / "builds",
        cache_limit=1 << 20,
    )


def test_defaults(component: LoadComponent, tmp_path: Path) -> None:
    spec = make(component, tmp_path)
    assert spec.build is not None
    out = f"{spec.build.entry}/out"
    # `only{deep}` is left out: deep is not active
    assert spec.command == [out, "x", "{literal}", "-n", "2", "--half", "really"]
    assert spec.build.commands == [["cc", "-fno-on", "-o", out]]
    assert spec.header == [["prepare", "a b"]]
    assert spec.env["F"] == "0.1"
    assert spec.env["MODE"] == "<a b>"
    assert spec.env["STATIC"] == "over"
    assert spec.env["CHOICE"] == "x"
    assert spec.env["LD_PRELOAD"].split(":")[0].endswith("components/one/lib.so")
    assert "LD_PRELOAD" not in spec.base_env
    assert "DEEPER" not in spec.env
    assert list(spec.scheduler_options) == ["--plugin", "p", "--nodes=1"]
    assert list(spec.directives) == ["#SBB flavor=small ram=1"]
    assert (tmp_path / "work" / "sub" / "t").read_text() == f"n 2\nkept $HOME ${{n}}\nat {tmp_path}/work\n"
    assert (tmp_path / "work" / "t.in").exists()
    assert spec.timeout == 50


def test_given_values(component: LoadComponent, tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "n": 3,
        "f": 1,
        "on": True,
        "half": False,
        "deep": 7,
        "deeper": 1,
        "quiet": 2,
        "mode": "$(rm -rf /)",
    }
    spec = make(component, tmp_path, timeout=9, **values)
    assert spec.command[1:] == ["x", "only7", "{literal}", "-n", "3", "--deep=7", "-q2"]
    assert spec.env["F"] == "1.0"
    assert spec.env["DEEPER"] == "1"
    assert spec.env["MODE"] == "<$(rm -rf /)>"
    # a value is one item as it stands, whatever is in it
    assert spec.header == [["prepare", "$(rm -rf /)"]]
    assert spec.timeout == 9
    assert spec.params["deeper"] == 1


def test_a_value_that_looks_like_a_placeholder_stays_as_it_is(component: LoadComponent, tmp_path: Path) -> None:
    spec = make(component, tmp_path, mode="{n}")
    assert spec.header == [["prepare", "{n}"]]
    assert spec.env["MODE"] == "<{n}>"


SCHEDULED = """
name: c
parameters:
  n: {type: int, min: 1, max: 8, default: 2, flag: "-n{value}"}
  on: {type: boolean, default: false, env: ON}
  deep: {type: int, min: 0, max: 9, default: 5, condition: {parent: on, values: [true]}, flag: "--deep={value}"}
applications: {main: {command: [x]}}
scheduler: {options: [OPTIONS], directives: [DIRECTIVES]}
"""


@pytest.mark.parametrize(
    ("options", "directives", "asks"),
    [
        ('"--comment={work}", "--nice={deep}"', '"#BB at={work}/a {{b}}", "#BB {deep}"', False),
        ('"--comment={work}"', '"#BB at={work}/a {{b}} n={n}"', True),
        ('"--comment={work}", "--nice={n}"', '"#BB at={work}/a {{b}}"', True),
    ],
)
def test_scheduler_options_with_values_and_folders(
    component: LoadComponent, tmp_path: Path, options: str, directives: str, asks: bool
) -> None:
    text = SCHEDULED.replace("OPTIONS", options).replace("DIRECTIVES", directives)
    spec = make(component, tmp_path, text=text)
    assert spec.scheduler_options[0] == f"--comment={tmp_path}/work"
    assert list(spec.scheduler_options[1:]) == (["--nice=2"] if "nice={n}" in options else [])
    [line] = spec.directives
    assert line == f"#BB at={tmp_path}/work/a {{b}}" + (" n=2" if "n={n}" in directives else "")
    assert spec.asks is asks


def test_flags_stand_where_they_are_placed(component: LoadComponent, tmp_path: Path) -> None:
    assert make(component, tmp_path, "placed").command == ["run", "-n", "2", "--half", "really", "last"]


def test_agents_own_settings_are_kept_from_trials(
    component: LoadComponent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMTAB_TOKEN", "secret")
    monkeypatch.setenv("OTHER", "kept")
    spec = make(component, tmp_path)
    assert spec.env["OTHER"] == "kept"
    assert "secret" not in spec.to_json()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"n": 9}, "'n': 9 is not an integer from 1 to 8"),
        ({"n": 2.5}, "'n': 2.5 is not an integer"),
        ({"n": True}, "'n': True is not an integer"),
        ({"n": "2; rm"}, "'n': '2; rm' is not an integer"),
        ({"f": float("nan")}, "'f': nan is not a number"),
        ({"f": -0.1}, "from 0 to 1"),
        ({"on": 1}, "'on': 1 is not true or false"),
        ({"mode": "c"}, "'mode': 'c' is not one of"),
        ({"quiet": True}, "'quiet': True is not one of 0, 1, 2"),
        ({"deep": 7}, "'deep' has a value but is active only if 'on' is True"),
        ({"on": True, "deep": 5, "deeper": 1}, "active only if 'deep' is 7"),
    ],
)
def test_values_that_the_file_does_not_allow(
    component: LoadComponent, tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnsuitableValueError) as caught:
        make(component, tmp_path, **values)
    assert words in str(caught.value)


def test_parameters_that_the_component_does_not_have(component: LoadComponent, tmp_path: Path) -> None:
    with pytest.raises(NotInComponentError, match="no parameter 'other'"):
        make(component, tmp_path, other=1)
    with pytest.raises(NotInComponentError, match="no application 'other'; it has main, placed"):
        make(component, tmp_path, "other")
    assert make(component, tmp_path, "").command[1] == "x"  # none named: the first


def test_integers_come_as_floats_from_some_clients(component: LoadComponent, tmp_path: Path) -> None:
    spec = make(component, tmp_path, n=4.0, quiet=2.0)
    assert spec.params["n"] == 4
    assert "-q2" in spec.command


def key(component: Component, **values: Any) -> str:
    return build_key(component, arguments.render(component, arguments.effective_values(component, values)))


def test_the_build_key_changes_only_with_inputs_of_the_build(component: LoadComponent) -> None:
    made = component(TEXT.replace("build:\n", "build:\n  sources: [t.in]\n"), **FILES)
    first = key(made)
    assert key(made, n=5, f=1.0, mode="{n}") == first
    assert key(made, on=True) != first
    (made.folder / "t.in").write_text("other")
    assert key(made) != first


def test_template_lines_of_inactive_parameters_are_left_out() -> None:
    assert render_template("a ${x}\nb ${y}\n$z $${x}", {"x": "1"}) == "a 1\n$z ${x}"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("n", "3", 3), ("f", "0.25", 0.25), ("on", "true", True), ("quiet", "2", 2), ("mode", "a b", "a b")],
)
def test_typed_values(component: LoadComponent, name: str, text: str, value: object) -> None:
    parsed = arguments.parse_value(component(TEXT, **FILES).parameters[name], text)
    assert (type(parsed), parsed) == (type(value), value)


def test_typed_values_are_checked(component: LoadComponent) -> None:
    parameters = component(TEXT, **FILES).parameters
    for name, text in (("n", "x"), ("n", "99"), ("on", "1"), ("mode", "zzz")):
        with pytest.raises(UnsuitableValueError):
            arguments.parse_value(parameters[name], text)


def test_a_refused_boolean_names_its_own_texts(component: LoadComponent) -> None:
    text = "name: own\nparameters: {sync: {type: boolean, default: true, on: 'yes', off: 'no', env: SYNC}}\n"
    text += "applications: {main: {command: ['true']}}\nmetrics: {t: wall_time}\n"
    sync = component(text).parameters["sync"]
    assert [arguments.parse_value(sync, word) for word in ("yes", "true", "no", "false")] == [True, True, False, False]
    with pytest.raises(UnsuitableValueError, match="'maybe' is not true or false, or yes, or no"):
        arguments.parse_value(sync, "maybe")
