"""The workload for Open MPI's collectives: its benchmark, its rules file, and both with the real mpirun."""

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtab
from tests.agent.conftest import AgentProcess, processes_of, run_agent_command
from tests.factories.service import EmbeddedService, require_program
from tests.factories.slurm import Slurm
from trimtab_agent.components.arguments import effective_values, render
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_agent.components.schema import Choices, Component

WORKLOAD = Path(__file__).parents[3] / "agents" / "workloads" / "openmpi-collectives"
COLLECTIVES = ("bcast", "gather", "reduce", "allreduce")
NUMBERS = {"allreduce": 2, "bcast": 7, "gather": 9, "reduce": 11}
OPEN_MPI_DECIDES = (0, 0, 0)
# more ranks than processors, as root
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def module(name: str) -> ModuleType:
    """A file of the workload. The others of its folder can be imported by it."""
    spec = importlib.util.spec_from_file_location(f"openmpi_collectives_{name}", WORKLOAD / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # where dataclasses look for it
    sys.path.insert(0, str(WORKLOAD))
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(str(WORKLOAD))
    return made


rules, latencies = module("rules"), module("latencies")


@pytest.fixture(scope="module")
def open_mpi() -> None:
    for program, package in (("mpirun", "openmpi-bin"), ("ompi_info", "openmpi-bin"), ("mpicc", "libopenmpi-dev")):
        require_program(program, package)


@pytest.fixture(scope="module")
def benchmark(open_mpi: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("benchmark") / "collective"
    source = str(WORKLOAD / "src" / "collective.c")
    subprocess.run(["mpicc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-o", str(program), source], check=True)
    return program


def mpirun(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **ENVIRONMENT, **variables}
    command = ["mpirun", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)


def with_rules(file: Path) -> list[str]:
    return ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_dynamic_rules_filename", str(file)]


# --- the rules file


def look_up(text: str, collective: str, ranks: int, total: int) -> tuple[int, ...]:
    """Algorithm, fan-out and segment size that a file gives, found as Open MPI does: at each level the last entry that
    is not above what is asked for, or the first one."""
    numbers = [int(word) for line in text.splitlines() for word in line.partition("#")[0].split()]
    assert all(number >= 0 for number in numbers)
    words = iter(numbers)

    def messages_of() -> list[tuple[int, ...]]:
        return [tuple(next(words) for _ in range(4)) for _ in range(next(words))]

    found: dict[int, list[tuple[int, list[tuple[int, ...]]]]] = {}
    for _ in range(next(words)):
        collective_number = next(words)
        found[collective_number] = [(next(words), messages_of()) for _ in range(next(words))]
    assert next(words, None) is None, "there is more in the file than it says"
    if NUMBERS[collective] not in found:
        return OPEN_MPI_DECIDES
    of_ranks = found[NUMBERS[collective]]
    messages = next((entry[1] for entry in reversed(of_ranks) if entry[0] <= ranks), of_ranks[0][1])
    return next((entry[1:] for entry in reversed(messages) if entry[0] <= total), messages[0][1:])


CASES = st.tuples(st.sampled_from(COLLECTIVES), st.integers(2, 40), st.sampled_from([4096 << n for n in range(9)]))
DECISIONS = st.tuples(st.integers(0, 9), st.integers(0, 8), st.sampled_from([0, 1024, 65536]))
COMMENTS = st.text(st.characters(codec="utf-8"), max_size=30)


@given(st.dictionaries(CASES, st.tuples(DECISIONS, COMMENTS), min_size=1, max_size=12), CASES, st.integers(-1, 1))
def test_rules_file_says_what_was_measured_and_no_more(
    measured: dict[tuple[str, int, int], tuple[tuple[int, int, int], str]], asked: tuple[str, int, int], off: int
) -> None:
    text = rules.render(rules.Rule(*case, *decision, comment) for case, (decision, comment) in measured.items())
    for case in [asked, *measured]:
        collective, ranks, size = case
        total = (size * ranks if collective == "gather" else size) + off
        own_ranks = [of for name, of, _ in measured if name == collective]
        expected: tuple[int, ...] = OPEN_MPI_DECIDES
        if own_ranks and min(own_ranks) <= ranks <= max(own_ranks):
            of = max(other for other in own_ranks if other <= ranks)
            scale = of if collective == "gather" else 1
            totals = {
                key[2] * scale: decision for key, (decision, _) in measured.items() if key[:2] == (collective, of)
            }
            if min(totals) <= total < 2 * max(totals):
                expected = totals[max(other for other in totals if other <= total)]
        assert look_up(text, collective, ranks, total) == expected


def test_rules_file_is_written_as_people_read_it() -> None:
    text = rules.render([rules.Rule("bcast", 4, 65536, 3, 0, 8192, "pipeline: 12 % less\n7 # no line of its own")])
    assert text.splitlines() == [
        "1 # collectives",
        "7 # bcast",
        "3 # numbers of ranks",
        "0 # ranks and more",
        "1 # message sizes: bytes, algorithm, fan-out, segment size",
        "0 0 0 0 # Open MPI decides",
        "4 # ranks and more",
        "3 # message sizes: bytes, algorithm, fan-out, segment size",
        "0 0 0 0 # Open MPI decides",
        "65536 3 0 8192 # pipeline: 12 % less 7 # no line of its own",
        "131072 0 0 0 # not measured",
        "5 # ranks and more: not measured",
        "1 # message sizes: bytes, algorithm, fan-out, segment size",
        "0 0 0 0 # Open MPI decides",
    ]


def test_rules_that_contradict_each_other_or_are_of_nothing() -> None:
    rule = rules.Rule("bcast", 4, 4096, 1)
    with pytest.raises(ValueError, match="two rules"):
        rules.render([rule, rules.Rule("bcast", 4, 4096, 2)])
    with pytest.raises(ValueError, match="unknown collectives: scatter"):
        rules.render([rules.Rule("scatter", 4, 4096, 1)])


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_mpirun_follows_the_file(collective: str, benchmark: Path, tmp_path: Path) -> None:
    """Open MPI says nothing of a file that it does not understand, but fails with an algorithm that it does not have:
    so it shows for which cases it took the rule."""
    file = tmp_path / "rules.conf"
    file.write_text(rules.render([rules.Rule(collective, 3, 8192, 99), rules.Rule("bcast", 9, 8192, 1)]))
    switches = with_rules(file)

    def works(ranks: int, size: int) -> bool:
        return mpirun("-n", str(ranks), *switches, benchmark, collective, str(size), "0.001").returncode == 0

    assert not works(3, 8192)
    assert not works(3, 16380)
    for ranks, size in [(3, 8188), (3, 16384), (2, 8192)]:
        assert works(ranks, size), (ranks, size)


# --- the benchmark and its output

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
@pytest.mark.parametrize("ranks", [2, 3])
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


# --- the component


@pytest.fixture
def loaded(open_mpi: None, tmp_path: Path) -> Component:
    return load(WORKLOAD / "component.yaml", Generator(tmp_path / "generated"))


def test_open_mpi_takes_every_parameter(loaded: Component) -> None:
    """Its own tool shows all values that reach it, by the names that the component uses."""
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


def test_parameters_are_those_of_the_installed_open_mpi(loaded: Component) -> None:
    algorithms = module("algorithms").identifiers()
    for collective in COLLECTIVES:
        domain = loaded.parameters[f"{collective}_algorithm"].domain
        assert isinstance(domain, Choices)
        assert set(domain.values) == set(algorithms[collective])
        assert sorted(algorithms[collective].values()) == list(range(len(domain.values)))


def test_no_open_mpi_is_a_clear_error(tmp_path: Path) -> None:
    command = [sys.executable, str(WORKLOAD / "algorithms.py")]
    answer = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: cannot run 'ompi_info'")
    assert "openmpi-bin" in answer.stderr


def attempt(components: Path, state: Path, *settings: str) -> str:
    """One trial of a bcast through the local runner; what `try` prints."""
    arguments = [item for setting in settings for item in ("--set", setting)]
    where = ["--components", str(components), "--state-dir", str(state), "--application", "bcast"]
    return run_agent_command(["try", "openmpi-collectives", *where, *arguments]).stdout


def test_a_trial(open_mpi: None, tmp_path: Path) -> None:
    settings = "bytes=4096", "ranks=2", "bcast_algorithm=chain", "bcast_segmentsize=1024", "bcast_fanout=2"
    printed = attempt(WORKLOAD, tmp_path, *settings)
    assert "outcome: completed" in printed
    assert "env: OMPI_MCA_coll_tuned_bcast_algorithm=chain" in printed
    found = dict(re.findall(r"^metric (\w+) = (\S+)$", printed, re.MULTILINE))
    assert 0 < float(found["median_us"]) <= float(found["max_us"])
    assert 0 < float(found["mean_us"]) <= float(found["max_us"])
    assert processes_of(tmp_path) == []


def test_a_wrong_result_is_infeasible(open_mpi: None, tmp_path: Path) -> None:
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
    printed = attempt(workload, tmp_path / "state", "bytes=4096")
    assert "outcome: infeasible" in printed
    assert "bcast: rank 1: wrong result: element 512 is " in printed
    assert "metric median_us" not in printed


# --- tune.py


def tune(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(WORKLOAD / "tune.py"), *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=280)


@pytest.fixture(scope="module")
def service(
    open_mpi: None, embedded_service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The variables by which tune.py finds the service, which has an agent with the workload."""
    folder = tmp_path_factory.mktemp("agent")
    agent = AgentProcess(folder, int(embedded_service.grpc_address.rpartition(":")[2]), embedded_service.token)
    agent.components = WORKLOAD
    agent.start()
    try:
        agent.wait_until_ready()
        yield {"TRIMTAB_URL": embedded_service.grpc_address, "TRIMTAB_TOKEN": embedded_service.token}
    finally:
        agent.clear_away()


def test_tune(service: dict[str, str], benchmark: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.conf"
    asked = ["--collectives", "bcast", "--sizes", "8192,4096", "--ranks", "2", "--trials", "4", "--check", "8"]
    asked += ["--pairs", "6", "--rules", str(file), "--name", "tested"]
    answer = tune(*asked, **service)
    assert answer.returncode == 0, answer.stderr
    with trimtab.Client(service["TRIMTAB_URL"], token=service["TRIMTAB_TOKEN"]) as client:
        names = [f"tested-bcast-{size}-2ranks" for size in (4096, 8192)]
        assert sorted(study.name for study in client.list_studies(name_prefix="tested-bcast-")) == names
        small, great = (client.get_study(name) for name in names)
        assert (small.state, great.state) == ("COMPLETED", "COMPLETED")
        first, trials = small.trials(), great.trials()
        assert {trial.params["bytes"] for trial in trials} == {8192}
        # what was measured in the smaller one, Open MPI's own decision aside, was measured before all else
        added = [trial for trial in trials if trial.origin == "added"]
        known = [json.dumps({**trial.params, "bytes": 8192}, sort_keys=True) for trial in first]
        assert added
        assert added[0].metrics.keys() == {"median_us", "mean_us", "max_us"}
        for trial in added:
            assert json.dumps(trial.params, sort_keys=True) in known
            assert trial.params["bcast_algorithm"] != "ignore"
        assert sum(trial.origin in ("suggested", "default", "replicate") for trial in trials) == 4
        numbers = module("algorithms").identifiers()["bcast"]
        for study, size in ((small, 4096), (great, 8192)):
            algorithm = 0
            if study.verdict is not None and study.verdict.low > 0:
                assert study.recommendation is not None
                algorithm = numbers[str(study.recommendation.params["bcast_algorithm"])]
            assert look_up(file.read_text(), "bcast", 2, size)[0] == algorithm
        assert mpirun("-n", "2", *with_rules(file), benchmark, "bcast", "8192", "0.01").returncode == 0
        # the same command again measures nothing anew
        written = file.read_text()
        file.unlink()
        assert tune(*asked, **service).returncode == 0
        assert file.read_text() == written
        assert len(client.get_study(names[1]).trials()) == len(trials)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--collectives", "bcast,scatter"], "--collectives is 'scatter'; allowed: bcast, gather, reduce, allreduce"),
        (["--sizes", "4k"], "--sizes is '4k'; allowed: 4096, 8192, "),
        (["--sizes", "4096,,8192"], "--sizes is ''; allowed: 4096, 8192, "),
        (["--ranks", "1"], "--ranks is '1'; allowed: 2 to 4096"),
        (["--trials", "0"], "--trials is 0; allowed: 1 or more"),
        (["--pairs", "3"], "--pairs is 3; allowed: 0, or 6 or more"),
        (["--check", "7"], "--check is 7; allowed: 8 or more"),
        (["--rules", "/nowhere/rules.conf"], "--rules is '/nowhere/rules.conf'; allowed: a file in a folder"),
    ],
)
def test_tune_refuses(service: dict[str, str], arguments: list[str], message: str) -> None:
    answer = tune(*arguments, **service)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: {message}")
    assert answer.stdout == ""


def test_tune_where_trials_run_through_slurm(
    open_mpi: None, slurm: Slurm, own_service: EmbeddedService, tmp_path: Path
) -> None:
    """The benchmark runs in jobs; whether the rules can be verified is tried in an allocation, too."""
    own_service.start()
    agent = AgentProcess(tmp_path, int(own_service.grpc_address.rpartition(":")[2]), own_service.token)
    agent.components = WORKLOAD
    agent.start("--runner", "slurm")
    asked = ["--collectives", "bcast", "--sizes", "4096", "--ranks", "2", "--trials", "3", "--check", "8"]
    asked += ["--pairs", "6", "--rules", str(tmp_path / "rules.conf"), "--launcher", "salloc --quiet --nodes=1"]
    try:
        agent.wait_until_ready()
        answer = tune(*asked, TRIMTAB_URL=own_service.grpc_address, TRIMTAB_TOKEN=own_service.token)
    finally:
        agent.clear_away()
    assert answer.returncode == 0, answer.stderr
    assert "Trying whether the rules can be verified by salloc --quiet --nodes=1" in answer.stderr
    assert "Rules written to" in answer.stdout
    jobs = [name for state, name, _ in slurm.jobs().values() if state == "COMPLETED"]
    trials = [name for name in jobs if name.startswith("trimtab-")]
    assert len(trials) >= 3
    assert len(jobs) > len(trials), "the allocation"


def test_rules_are_verified_in_an_allocation(open_mpi: None, slurm: Slurm, tmp_path: Path) -> None:
    tune_module = module("tune")
    file = tmp_path / "rules.conf"
    file.write_text(rules.render([rules.Rule("bcast", 2, 4096, 1), rules.Rule("reduce", 2, 8192, 99)]))
    options = tune_module.arguments(
        ["--rules", str(file), "--pairs", "2", "--launcher", "salloc --quiet --nodes=1 --exclusive"]
    )
    case = tune_module.Case("bcast", 2, 4096)
    pairs: list[tuple[int, float, float]] = []
    node = tune_module.follow_verification(options, [case], lambda *pair: pairs.append(pair))
    assert node in slurm.nodes
    assert [number for number, _, _ in pairs] == [0, 0]
    assert all(without > 0 and ruled > 0 for _, without, ruled in pairs)
    assert [path.name for path in tmp_path.iterdir()] == ["rules.conf"], "what was built is gone"
    # the file is what the processes there go by: an algorithm that Open MPI does not have fails
    with pytest.raises(Exception, match=r"mpirun .* ended with status"):
        tune_module.follow_verification(options, [tune_module.Case("reduce", 2, 8192)])
    options.launcher = ["no-such-launcher"]
    with pytest.raises(Exception, match="--launcher: 'no-such-launcher' cannot be started: No such file"):
        tune_module.follow_verification(options, [])
    options.launcher = ["salloc", "--quiet", "--partition=nowhere"]
    with pytest.raises(Exception, match="invalid partition specified: nowhere"):
        tune_module.follow_verification(options, [])


def test_tune_without_mpirun(open_mpi: None, tmp_path: Path) -> None:
    ompi_info = shutil.which("ompi_info")
    assert ompi_info is not None
    (tmp_path / "ompi_info").symlink_to(ompi_info)
    answer = tune(PATH=str(tmp_path))
    assert answer.returncode == 1
    assert answer.stderr.startswith(
        f"error: mpirun is not in the PATH of {socket.gethostname()}, and verifies the rules"
    )
    assert "openmpi-bin" in answer.stderr
    assert "--pairs 0" in answer.stderr
