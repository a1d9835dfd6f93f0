"""The bundled workload: its program judges its own results, and its flag space comes from the compiler."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKLOAD = Path(__file__).parents[3] / "agents" / "workloads" / "gcc-flags"
SOURCES = sorted(str(path) for path in (WORKLOAD / "src").glob("*.c"))


def build(target: Path, *arguments: str) -> Path:
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", *arguments, "-o", str(target), *SOURCES, "-lm"]
    subprocess.run(command, check=True)
    return target


def flags(*names: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(WORKLOAD / "flags.py"), *names]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize(
    "arguments", [[], ["-O0"], ["-Ofast", "-march=native", "-flto"], ["-fsanitize=address,undefined"]]
)
def test_right_results_whatever_the_flags(tmp_path: Path, arguments: list[str], programs_start: None) -> None:
    answer = subprocess.run([build(tmp_path / "work", *arguments)], capture_output=True, text=True, check=True)
    metrics = json.loads(answer.stdout)
    kernels = {name for name in metrics if name != "seconds"}
    assert kernels == {f"{kernel}_seconds" for kernel in ("lz", "spmv", "join", "search", "stencil", "sort")}
    assert metrics["seconds"] == pytest.approx(sum(metrics[name] for name in kernels), abs=1e-5)


def test_a_broken_build_is_found_out(tmp_path: Path, programs_start: None) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text(
        "#include <stddef.h>\n"
        "void *__real_memcpy(void *to, const void *from, size_t bytes);\n"
        "void *__wrap_memcpy(void *to, const void *from, size_t bytes)\n"
        "{\n"
        "    __real_memcpy(to, from, bytes);\n"
        "    if (bytes > 1000000)\n"
        "        ((char *)to)[bytes / 2] ^= 1;\n"
        "    return to;\n"
        "}\n"
    )
    program = build(tmp_path / "work", str(broken), "-Wl,--wrap=memcpy")
    answer = subprocess.run([program], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr == "sort: wrong result\n"
    assert answer.stdout == ""


def test_flags_have_the_compilers_kinds_values_and_defaults(programs_start: None) -> None:
    answer = flags(
        "unroll-loops", "vect-cost-model", "param:sched-pressure-algorithm", "param:max-unroll-times", "march:native"
    )
    parameters = json.loads(answer.stdout)["parameters"]
    assert list(parameters) == [
        "unroll-loops",
        "vect-cost-model",
        "sched-pressure-algorithm",
        "max-unroll-times",
        "march-native",
    ]
    assert parameters["unroll-loops"]["flag"] == {"on": "-funroll-loops", "off": "-fno-unroll-loops"}
    assert parameters["unroll-loops"]["default"] is False
    model = parameters["vect-cost-model"]
    assert model["type"] == "categorical"
    assert {"unlimited", "dynamic", "cheap"} <= set(model["values"])
    assert model["default"] in model["values"]
    assert parameters["sched-pressure-algorithm"]["values"] == [1, 2]
    unroll = parameters["max-unroll-times"]
    assert unroll["values"] == [1, 2, 4, 8, 16, 32, 64]
    assert unroll["flag"].format(value=4) == "--param=max-unroll-times=4"


def test_unknown_flags_are_left_out_with_a_note(programs_start: None) -> None:
    answer = flags("unroll-loops", "no-such-flag", "param:no-such-param", "march:no-such-machine")
    assert list(json.loads(answer.stdout)["parameters"]) == ["unroll-loops"]
    for name in ("no-such-flag", "param:no-such-param", "march:no-such-machine"):
        assert f"left out: {name}: " in answer.stderr


@pytest.mark.parametrize(
    ("compiler", "message"), [("no-such-compiler", "install gcc or set CC"), ("false", "set CC to a GCC")]
)
def test_no_gcc_is_a_clear_error(compiler: str, message: str, programs_start: None) -> None:
    answer = flags("unroll-loops", CC=compiler)
    assert answer.returncode == 1
    assert message.lower() in answer.stderr.lower()
