"""Tests of the benchmark and its output, and of the component."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.conftest import processes_of
from tests.agent.workloads.openmpi_collectives.mpi import COLLECTIVES, WORKLOAD, mpirun
from tests.agent.workloads.shared import metrics_in, module_of, try_trial
from tests.marks import slow_cases
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_components.arguments import effective_values, render
from trimtab_components.schema import Choices, Component

latencies = module_of(WORKLOAD, "latencies")
OSU_PERCENTILES = """
# OSU MPI Broadcast Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations        Validation  P50 Tail Lat(us)
4096                   17.37             16.38             17.84         100              Pass             12.69
8192                   17.46             15.16             18.31         100              Fail             12.24
"""

OSU_PLAIN = """
# OSU MPI Gather Latency Test v5.8
# Size       Avg Latency(us)
4096                   14.73
"""


def run_of(text: str, **params: object) -> SimpleNamespace:
    return SimpleNamespace(stdout=text, params=params)


def test_osu_output() -> None:
    right = run_of(OSU_PERCENTILES, bytes=4096)
    values = latencies.median_us(right), latencies.mean_us(right), latencies.max_us(right)
    assert values == (12.69, 17.37, 17.84)
    assert latencies.median_us(run_of(OSU_PERCENTILES, bytes=8192)) is None  # a failed validation
    assert latencies.mean_us(run_of(OSU_PERCENTILES, bytes=16384)) is None  # another size's number is none
    plain = run_of(OSU_PLAIN)
    assert (latencies.mean_us(plain), latencies.median_us(plain)) == (14.73, None)
    assert latencies.mean_us(run_of("mpirun was unable to launch\n12\n")) is None


@given(st.text())
def test_any_output_has_numbers_or_none(text: str) -> None:
    for output in (text, f"# Size   Avg Latency(us)\n{text}"):
        value = latencies.mean_us(run_of(output))
        assert value is None or isinstance(value, float)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [3, *slow_cases("three ranks are the harder number", 2)])
def test_benchmark(benchmark: Path, collective: str, ranks: int) -> None:
    answer = mpirun("-n", str(ranks), benchmark, collective, "4096", "0.01")
    assert answer.returncode == 0, answer.stderr
    [(size, row)] = latencies.parse(answer.stdout).items()
    assert size == 4096
    assert 0 < row["Min Latency(us)"] <= row["P50 Tail Lat(us)"] <= row["P90 Tail Lat(us)"] <= row["Max Latency(us)"]
    assert row["Min Latency(us)"] <= row["Avg Latency(us)"] <= row["Max Latency(us)"]
    assert row["Iterations"] >= 20


@pytest.mark.parametrize("arguments", [["scatter", "4096"], ["reduce", "4095"], ["bcast", "0"], ["bcast", "4096", "x"]])
def test_benchmark_refuses_wrong_arguments(benchmark: Path, arguments: list[str]) -> None:
    answer = mpirun("-n", "2", benchmark, *arguments)
    assert answer.returncode == 2
    assert "usage: " in answer.stderr
    assert answer.stdout == ""


@pytest.fixture
def loaded(open_mpi: None, tmp_path: Path, programs_start: None) -> Component:
    return load(WORKLOAD / "component.yaml", Generator(tmp_path / "generated"))


def test_open_mpi_takes_every_parameter(loaded: Component) -> None:
    """ompi_info shows all values that reach Open MPI, by the names that the component uses."""
    for pick in (1, -1):
        given: dict[str, Any] = {}
        for name, parameter in loaded.parameters.items():
            if isinstance(parameter.domain, Choices) and name.endswith("_algorithm"):
                conditions = [one.condition for one in loaded.parameters.values()]
                used = [one.values[0] for one in conditions if one is not None and one.parent == name]
                given[name] = used[0] if used and pick == 1 else parameter.domain.values[pick]
        variables = render(loaded, effective_values(loaded, given)).env
        assert set(given.values()) <= set(variables.values())
        argv = ["ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable"]
        shown = subprocess.run(argv, env={**os.environ, **variables}, capture_output=True, text=True, check=True).stdout
        for variable, value in variables.items():
            name = variable.removeprefix("OMPI_MCA_")
            assert f":{name}:value:{value}\n" in shown
            assert f":{name}:source:environment\n" in shown


def test_parameters_match_the_algorithms_of_the_installed_open_mpi(loaded: Component) -> None:
    algorithms = module_of(WORKLOAD, "algorithms").identifiers()
    for collective in COLLECTIVES:
        domain = loaded.parameters[f"{collective}_algorithm"].domain
        assert isinstance(domain, Choices)
        assert set(domain.values) == set(algorithms[collective])
        assert sorted(algorithms[collective].values()) == list(range(len(domain.values)))


def test_no_open_mpi_is_a_clear_error(tmp_path: Path, programs_start: None) -> None:
    command = [sys.executable, str(WORKLOAD / "algorithms.py")]
    answer = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: cannot run 'ompi_info'")
    assert "openmpi-bin" in answer.stderr


def try_bcast(workload: Path, state: Path, *values: str) -> str:
    """Run one trial of a bcast with these values; return its output."""
    return try_trial(workload, state, "bcast", *(item for value in values for item in ("--set", value)))


def test_a_trial(open_mpi: None, tmp_path: Path, programs_start: None) -> None:
    settings = "bytes=4096", "ranks=2", "bcast_algorithm=chain", "bcast_segmentsize=1024", "bcast_fanout=2"
    printed = try_bcast(WORKLOAD, tmp_path, *settings)
    assert "outcome: completed" in printed
    assert "env: OMPI_MCA_coll_tuned_bcast_algorithm=chain" in printed
    found = metrics_in(printed)
    assert 0 < found["median_us"] <= found["max_us"]
    assert 0 < found["mean_us"] <= found["max_us"]
    assert processes_of(tmp_path) == []


def test_a_wrong_result_is_infeasible(open_mpi: None, tmp_path: Path, programs_start: None) -> None:
    workload = tmp_path / "openmpi-collectives"
    shutil.copytree(WORKLOAD, workload)
    (workload / "src" / "broken.c").write_text(
        "#include <mpi.h>\n"
        "int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)\n"
        "{\n"
        "    int rank, status = PMPI_Bcast(data, count, type, root, comm);\n"
        "    MPI_Comm_rank(comm, &rank);\n"
        "    if (rank == 1)\n"
        "        ((float *)data)[count / 2] += 1;\n"
        "    return status;\n"
        "}\n"
    )
    file = workload / "component.yaml"
    source = '"{component}/src/collective.c"'
    assert source in file.read_text()
    file.write_text(file.read_text().replace(source, f'{source}, "{{component}}/src/broken.c"'))
    printed = try_bcast(workload, tmp_path / "state", "bytes=4096")
    assert "outcome: infeasible" in printed
    assert "bcast: rank 1: wrong result: element 512 is " in printed
    assert "metric median_us" not in printed
