"""The modules that `import trimtab` loads, and the interface of the package."""

import inspect
import pickle
import subprocess
import sys
from importlib.resources import files

from opentelemetry.sdk.trace import TracerProvider

import trimtab
from trimtab import errors, tracing

HEAVY = ["torch", "pandas", "numpy", "typer", "rich", "yaml", "grpc", "google.protobuf", "opentelemetry"]


def loaded(statement: str) -> list[str]:
    code = f"import sys; {statement}; print(*[name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_import_loads_nothing_heavy() -> None:
    assert loaded("import trimtab") == []


def test_a_client_needs_neither_the_command_line_nor_numbers() -> None:
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


def test_every_error_has_one_root_and_survives_pickling() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.TrimtabError)]
    assert len(kinds) > 10
    for kind in kinds:
        error = kind("some_code", "some message", retryable=True, data={"field": "x"})
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is kind
        assert vars(back) == vars(error)
        assert str(back) == "some message"
