"""Component files: what a good one becomes, and what is said of a bad one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import run_agent_command
from tests.factories.component_texts import BAD, FILES, FULL, IN_FOLDER, faulty
from trimtab_agent import needs
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.identity import of_dependency
from trimtab_agent.components.loader import load, load_all
from trimtab_agent.errors import ComponentError
from trimtab_agent.messages import of_component, to_value
from trimtab_agent.preparation import prepare
from trimtab_components.schema import Choices, Component, Injected, Range, Switch

LoadComponent = Callable[..., Component]


def test_full_file(component: LoadComponent) -> None:
    made = component(FULL, **FILES)
    assert list(made.parameters) == ["SIZE", "ratio", "fast", "mode", "depth", "line"]
    assert made.parameters["SIZE"].domain == Range("int", 1, 1024, log=True, factor=2)
    assert made.parameters["ratio"].domain == Range("float", 1e-3, 1.0, log=True)
    assert made.parameters["fast"].domain == Switch()
    # YAML 1.2: on and off are text
    assert made.parameters["mode"].domain == Choices(ordered=False, values=("on", "off", 3))
    assert made.parameters["depth"].condition is not None
    assert made.applications["main"].repeats == 3
    assert [metric.kind for metric in made.metrics.values()] == ["wall_time", "regex", "json", "python"]
    assert made.failed_exit_codes == (75,)
    assert set(made.injected) == {
        Injected("a slow disk"),
        Injected("load", application="main"),
        Injected("heat", parameter="fast", values=(True,)),
    }


@pytest.mark.parametrize("kind", ["cpu_time", "peak_memory", "bytes_written"])
def test_what_the_trial_or_a_server_uses_is_a_metric(component: LoadComponent, kind: str) -> None:
    made = component(faulty(rest=f"metrics: {{own: {kind}, server: {{type: {kind}, process: redis-server}}}}"))
    kinds = [(metric.name, metric.kind, metric.process) for metric in made.metrics.values()]
    assert kinds == [("own", kind, ""), ("server", kind, "redis-server")]


def test_message_to_the_service(component: LoadComponent) -> None:
    message = of_component(component(FULL, **FILES))
    assert message.name == "everything"
    assert list(message.applications) == ["main"]
    assert list(message.metrics) == ["seconds", "rate", "deep", "own"]
    space = {parameter.name: parameter for parameter in message.space}
    assert (space["SIZE"].integer.min, space["SIZE"].integer.max, space["SIZE"].integer.factor) == (1, 1024, 2)
    assert not space["SIZE"].integer.HasField("step")
    assert (space["SIZE"].unit, space["ratio"].unit) == ("KiB", "")
    assert space["line"].integer.step == 1
    assert space["ratio"].float.log
    assert space["fast"].WhichOneof("kind") == "boolean"
    assert [to_value(value) for value in space["mode"].categorical.values] == ["on", "off", 3]
    assert space["depth"].condition.parent == "fast"
    assert [to_value(value) for value in space["depth"].condition.values] == [True]
    assert to_value(space["ratio"].default) == 0.5
    injected = [(one.text, one.application, one.parameter, *map(to_value, one.values)) for one in message.injected]
    assert sorted(injected) == [("a slow disk", "", ""), ("heat", "", "fast", True), ("load", "main", "")]


def test_the_service_is_told_of_a_live_system(component: Callable[..., Component]) -> None:
    text = """
name: cache
parameters: {size: {type: int, min: 1, max: 9, default: 4}, safe: {type: boolean, default: true}}
live:
  instances: [one]
  apply: {command: [apply.sh, "{instance}"]}
  revert: {command: [revert.sh, "{instance}"]}
  verify: {command: [verify.sh, "{instance}"]}
  restart: [size]
  forbidden: [safe]
  metrics: {ms: {type: file, file: /run/ms}, hits: {type: file, file: /run/hits}}
  guards:
    slow: {metric: ms, above_control: 1.5, for: 5}
    high: {metric: ms, above: 100}
    low: {metric: hits, below: 0.5, for: 2}
  warm_up: 3
  block: 20
"""
    live = of_component(component(text)).live
    assert (list(live.restart), list(live.forbidden), live.warm_up, live.block) == (["size"], ["safe"], 3, 20)
    assert {guard.name: (guard.metric, guard.WhichOneof("limit"), guard.for_seconds) for guard in live.guards} == {
        "slow": ("ms", "above_control", 5),
        "high": ("ms", "above", 1),
        "low": ("hits", "below", 2),
    }
    assert not of_component(component(FULL, **FILES)).HasField("live")


def test_digest_covers_every_file_that_is_referred_to(write_component: Callable[..., Path], tmp_path: Path) -> None:
    path = write_component(FULL, **FILES)
    generator = Generator(tmp_path)
    first = load(path, generator).digest
    assert load(path, generator).digest == first
    seen = {first}
    for name in ("a.c", "conf.in", "parse.py"):
        (path.parent / name).write_text((path.parent / name).read_text() + "\n")
        seen.add(load(path, generator).digest)
    path.write_text(FULL + "# a remark\n")
    seen.add(load(path, generator).digest)
    assert len(seen) == 5


@pytest.mark.parametrize(("text", "line", "field", "words"), [*BAD, *IN_FOLDER])
def test_bad_file(component: LoadComponent, text: str, line: int, field: str, words: str, programs_start: None) -> None:
    with pytest.raises(ComponentError) as caught:
        component(text)
    reported = [(problem.line, problem.field) for problem in caught.value.problems]
    assert (line, field) in reported, str(caught.value)
    assert words in str(caught.value)
    assert "component.yaml" in str(caught.value)


LIVE = """name: live
parameters:
  x: {type: int, min: 1, max: 9, default: 1}
live:
  instances: [one]
  apply: {command: [put, "{instance}"]}
  revert: {command: [back]}
  verify: {command: [show], timeout: 1m}
  metrics: {p95: {type: file, file: "/run/{instance}", path: a}}
  guards: {slow: {metric: p95, above_control: 1.5, for: 2m}}
"""


def test_a_live_system_has_its_instances_as_applications_and_its_readings_as_metrics(component: LoadComponent) -> None:
    made = component(LIVE)
    assert made.live is not None
    assert (made.live.verify.timeout, made.live.guards["slow"].seconds, made.live.block) == (60, 120, 60)
    assert list(made.applications) == ["one"]
    assert [(metric.name, metric.kind) for metric in made.metrics.values()] == [("p95", "live")]


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("  revert: {command: [back]}\n", "", "live.revert", "is missing"),
        ("metric: p95", "metric: p99", "live.guards.slow.metric", "'p99' is not one of p95, machine.memory_used"),
        ("above_control: 1.5", "above_control: 0.5", "live.guards.slow.above_control", "0.5 is not above 1, a factor"),
        ("above_control: 1.5", "above: 3, below: 1", "live.guards.slow", "must have one of above, below"),
        ("for: 2m", "for: soon", "live.guards.slow.for", "'soon' is not a time, such as 5, 5s, 2m or 24h"),
        ("timeout: 1m", "timeout: 1h", "live.verify.timeout", "3600 s is not from 0.1 to 600 seconds"),
        ('"{instance}"]', '"{x}"]', "live.apply.command", "{x} is not one of {instance}, {component}"),
        ("[one]", "[one, two words]", "live.instances", "'two words' is not a name"),
        ("name: live", "name: live\nbuild: {commands: [[make]]}", "build", "is not allowed with `live`"),
        ("  instances", "  restart: [y]\n  instances", "live.restart", "'y' is not a parameter of this component"),
        ("  guards: {slow: {metric: p95, above_control: 1.5, for: 2m}}", "  guards: {}", "live.guards", "at least one"),
    ],
)
def test_a_bad_live_system(component: LoadComponent, old: str, new: str, field: str, words: str) -> None:
    assert old in LIVE
    with pytest.raises(ComponentError) as caught:
        component(LIVE.replace(old, new))
    assert field in [problem.field for problem in caught.value.problems], str(caught.value)
    assert words in str(caught.value)


SCRIPT = """#!/bin/bash -l
# what it is for
#SBATCH --nodes=2

#BB pool=fast
echo "$@"
#SBATCH --nodes=3
"""
SCRIPTED = "name: c\nparameters: {n: {type: int, min: 1, max: 2, default: 1, flag: '-n{value}'}}\n"
SCRIPTED += "scheduler: {directives: ['#SBB a=1']}\napplications: {m: {script: run.sh}}\n"


def test_batch_script(component: LoadComponent, tmp_path: Path) -> None:
    made = component(SCRIPTED, run__sh=SCRIPT)
    work = tmp_path / "work"
    work.mkdir()
    options: dict[str, Any] = {"required": [], "timeout": 0, "work": work, "cache": tmp_path, "cache_limit": 1}
    spec = prepare(made, "m", {}, title="t", **options)
    assert spec.command == ["/bin/bash", "-l", f"{made.folder}/run.sh", "-n1"]
    assert list(spec.directives) == ["#SBATCH --nodes=2", "#BB pool=fast", "#SBB a=1"]
    assert component(SCRIPTED, run__sh=SCRIPT + "#").digest != made.digest


@pytest.mark.parametrize(
    ("script", "line", "words"),
    [
        ("#!/bin/sh\necho a\r\n", 2, "use LF only"),
        ("echo a\n", 1, "'echo a' is not '#!' with the path of an interpreter"),
        ("", 1, "is not '#!'"),
        ("#! sh\n", 1, "is not '#!'"),
        ("#!/bin/sh\n#SBATCH --array=1-9\n", 2, "an array is not allowed"),
        ("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n", 3, "a heterogeneous job is not allowed"),
    ],
)
def test_bad_batch_script(component: LoadComponent, script: str, line: int, words: str) -> None:
    with pytest.raises(ComponentError) as caught:
        component(SCRIPTED, run__sh=script)
    (problem,) = caught.value.problems
    assert (Path(problem.file).name, problem.line, problem.field) == ("run.sh", line, "applications.m.script")
    assert words in problem.message


def test_all_faults_of_all_files_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("name: 'a b'\nfoo: 1\n")
    (tmp_path / "two.yaml").write_text("name: ok\napplications: {m: {command: x}}\n")
    with pytest.raises(ComponentError) as caught:
        load_all(tmp_path, Generator(tmp_path / "generated"))
    fields = {(Path(problem.file).name, problem.field) for problem in caught.value.problems}
    assert fields >= {("one.yaml", "name"), ("one.yaml", "foo"), ("one.yaml", "applications")}
    assert ("two.yaml", "applications.m.command") in fields


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    for file in ("one.yaml", "two.yaml"):
        (tmp_path / file).write_text("name: same\napplications: {m: {command: [x]}}\n")
    with pytest.raises(ComponentError, match=r"'same' is also the name of .*one\.yaml"):
        load_all(tmp_path, Generator(tmp_path / "generated"))


GENERATED = """
name: g
parameters_from: {command: [sh, "{component}/list.sh"], depends: [list.sh, sh]}
parameters: {b: {type: boolean, default: true, env: B}}
applications: {main: {command: [run]}}
"""
LIST = """echo run >> "$(dirname "$0")/runs"
echo '{"parameters": {"a": {"type": "int", "min": 1, "max": 4, "default": 2, "flag": "-a{value}"},'
echo ' "b": {"type": "boolean", "default": false, "env": "B"}}}'
"""


def test_generated_parameters(write_component: Callable[..., Path], tmp_path: Path, programs_start: None) -> None:
    path = write_component(GENERATED, list__sh=LIST)
    made = load(path, Generator(tmp_path / "generated"))
    assert list(made.parameters) == ["a", "b"]
    assert made.parameters["b"].default is True  # the file's own comes before the generated one
    again = load(path, Generator(tmp_path / "generated"))
    assert again.digest == made.digest
    assert (path.parent / "runs").read_text().count("run") == 1  # kept, since it says what it depends on
    (path.parent / "list.sh").write_text(LIST.replace('"max": 4', '"max": 5'))
    changed = load(path, Generator(tmp_path / "generated"))
    assert changed.parameters["a"].domain == Range("int", 1, 5)
    assert changed.digest != made.digest


def test_faults_of_generated_parameters_name_the_program_and_its_line(
    component: LoadComponent, programs_start: None
) -> None:
    with pytest.raises(ComponentError) as caught:
        component(GENERATED, list__sh=LIST.replace('"min": 1', '"min": 9'))
    problem = next(problem for problem in caught.value.problems if problem.field == "parameters.a.min")
    assert problem.file.startswith("<output of sh")
    assert problem.line == 1


def test_check_prints_the_space_or_every_fault(write_component: Callable[..., Path], programs_start: None) -> None:
    path = write_component(FULL, **FILES)
    done = run_agent_command(["check", str(path.parent.parent)])
    assert done.returncode == 0, done.stderr
    assert "everything" in done.stdout
    assert "int 1..1024 factor 2 log" in done.stdout
    assert "while fast is true" in done.stdout
    path.write_text(FULL.replace("max: 1024", "max: 0").replace("preload", "prelaod"))
    done = run_agent_command(["check", str(path.parent.parent)])
    assert done.returncode == 2
    assert f"{path}:4: parameters.SIZE.min: 1 is not below max, 0" in done.stderr
    assert "did you mean 'preload'?" in done.stderr


def test_a_program_outside_path_is_found_where_debian_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's package postgresql has no program `postgres` in PATH, but in a folder of its version."""
    program = tmp_path / "lib/15/bin/served"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="nor a program in PATH"):
        of_dependency("served", tmp_path)
    monkeypatch.setattr(needs, "FOLDERS", (f"{str(tmp_path)[1:]}/lib/*/bin",))
    assert str(program) in of_dependency("served", tmp_path)
