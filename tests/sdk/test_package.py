"""The modules that `import trimtab` loads, and the interface of the package."""

import inspect
import pickle
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

import trimtab
from trimtab import errors
from trimtab._internal.connection import tracing

HEAVY = ["torch", "pandas", "numpy", "typer", "rich", "yaml", "grpc", "google.protobuf", "opentelemetry"]


def loaded(statement: str) -> list[str]:
    code = f"import sys; {statement}; print(*[name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_import_loads_nothing_heavy(programs_start: None) -> None:
    assert loaded("import trimtab") == []


def test_the_command_line_loads_no_grpc_before_a_command_needs_it(programs_start: None) -> None:
    assert set(loaded("import trimtab.cli.main")) == {"typer", "rich"}


def test_a_client_needs_neither_the_command_line_nor_numbers(programs_start: None) -> None:
    statement = "import trimtab; trimtab.Client('127.0.0.1:1', 't')"
    assert set(loaded(statement)) == {"grpc", "google.protobuf"}


def test_the_active_span_of_a_program_goes_along() -> None:
    assert tracing.metadata() == ()
    with TracerProvider(shutdown_on_exit=False).get_tracer("program").start_as_current_span("own") as span:
        own = span.get_span_context()
        text = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
        assert tracing.metadata() == (("traceparent", text),)
    assert tracing.metadata() == ()


def test_the_package_is_typed_and_all_it_names_is_there() -> None:
    assert files("trimtab").joinpath("py.typed").is_file()
    assert all(hasattr(trimtab, name) for name in trimtab.__all__)


SCRIPT = """
import math

import trimtab
import trimtab.aio


def measure_files(params: trimtab.Params, files: list[str], *, repeats: int = 1) -> float:
    return len(files) / repeats + float(params["x"])


async def wait_for_files(params: trimtab.Params, files: list[str]) -> float:
    return len(files) + float(params["x"])


async def tune_all(study: trimtab.aio.Study) -> None:
    await study.optimize(trimtab.with_arguments(wait_for_files, ["a"]), n_trials=3)


def measure(params: trimtab.Params) -> float:
    x: float = params["x"]
    threads: int = params["threads"]
    return math.sin(x) + 1 / threads


def tune(client: trimtab.Client) -> trimtab.Study:
    space = [trimtab.Float("x", 0, 1), trimtab.Int("threads", 1, 16), trimtab.Categorical("alg", ["a", "b"])]
    study: trimtab.Study = client.create_study("mine", space=space, objectives=[trimtab.Minimize("seconds")])
    study.optimize(measure, n_trials=20, parallel=4)
    study.optimize(trimtab.with_arguments(measure_files, ["a"], repeats=3), n_trials=20)
    study.enqueue({"x": 0.5}, count=2)
    for trial in study.ask(2):
        study.tell(trial, {"seconds": measure(trial.params)})
    print(" ".join(["-O", trial.params["alg"]]), study.best_trial.params["threads"] + 1)
    return study
"""


MISTAKES = """
study.optimize(trimtab.with_arguments(measure_files, 3))  # arg-type
study.optimize(trimtab.with_arguments(measure_files, ["a"], repeats="3"))  # arg-type
study.optimize(trimtab.with_arguments(measure_files))  # call-arg
study.optimize(trimtab.with_arguments(measure_files, ["a"], repetitions=3))  # call-arg
study.optimize(measure_files)  # arg-type
study.optimize(trimtab.with_arguments(wait_for_files, ["a"]))  # arg-type
study.optimize(measure, n_trials="20")  # arg-type
"""


@pytest.mark.slow("mypy reads the whole SDK without a cache, and `make lint` checks its types")
def test_a_user_s_script_needs_no_casts_and_mistakes_are_found(tmp_path: Path, programs_start: None) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    imports = "import trimtab\nfrom script import measure, measure_files, wait_for_files\nstudy: trimtab.Study\n"
    (tmp_path / "mistakes.py").write_text(imports + MISTAKES)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / "cache")]
    command += ["--hide-error-context", "script.py", "mistakes.py"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    lines = (imports + MISTAKES).splitlines()
    expected = {(at, line.split("# ")[1]) for at, line in enumerate(lines, 1) if "# " in line}
    found = re.findall(r"^(.+):(\d+): error: .*\[(.+)\]$", run.stdout, re.MULTILINE)
    assert {(file, int(line), kind) for file, line, kind in found} == {
        ("mistakes.py", line, kind) for line, kind in expected
    }, run.stdout + run.stderr


def measure_files(params: trimtab.Params, files: list[str], *, repeats: int = 1) -> float:
    """Return a number that depends on every argument."""
    return len(files) / repeats + float(params["x"])


def test_further_arguments_follow_the_parameters_and_survive_pickling() -> None:
    fn = trimtab.with_arguments(measure_files, ["a", "b", "c"], repeats=2)
    assert fn({"x": 10}) == 11.5
    assert pickle.loads(pickle.dumps(fn))({"x": 10}) == 11.5
    assert inspect.unwrap(fn) is measure_files


def test_every_error_has_one_root_and_survives_pickling() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.TrimtabError)]
    assert len(kinds) > 10
    for kind in kinds:
        error = kind("some_code", "some message", retryable=True, data={"field": "x"})
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is kind
        assert vars(back) == vars(error)
        assert str(back) == "some message"
