"""The modules that `import trimtab` loads, and the interface of the package."""

import inspect
import pickle
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


def measure(params: trimtab.Params) -> float:
    x: float = params["x"]
    threads: int = params["threads"]
    return math.sin(x) + 1 / threads


def tune(client: trimtab.Client) -> trimtab.Study:
    space = [trimtab.Float("x", 0, 1), trimtab.Int("threads", 1, 16), trimtab.Categorical("alg", ["a", "b"])]
    study: trimtab.Study = client.create_study("mine", space=space, objectives=[trimtab.Minimize("seconds")])
    study.optimize(measure, n_trials=20, parallel=4)
    study.enqueue({"x": 0.5}, count=2)
    for trial in study.ask(2):
        study.tell(trial, {"seconds": measure(trial.params)})
    print(" ".join(["-O", trial.params["alg"]]), study.best_trial.params["threads"] + 1)
    return study
"""


@pytest.mark.slow("mypy reads the whole SDK without a cache, and `make lint` checks its types")
def test_a_user_s_script_needs_no_casts(tmp_path: Path, programs_start: None) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run([*command, str(script)], capture_output=True, text=True)
    assert run.stdout.startswith("Success"), run.stdout + run.stderr


def test_every_error_has_one_root_and_survives_pickling() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.TrimtabError)]
    assert len(kinds) > 10
    for kind in kinds:
        error = kind("some_code", "some message", retryable=True, data={"field": "x"})
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is kind
        assert vars(back) == vars(error)
        assert str(back) == "some message"
