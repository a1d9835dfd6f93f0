"""`trimtab measure-grid` against a real service: a table that a replay can use."""

import csv
import json
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import trimtab
from service.replay.measured_table import Selection, load
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.sdk.cli.shell import COMMAND, Shell
from tests.sdk.hand import agent
from trimtab.cli.measure_grid import replay_command, write
from trimtab.spec import StudySpec
from trimtab.trial import Trial, TrialState

FILE = """
component: {component}
application: small
objectives: [{{minimize: seconds}}]
budget: {{max_trials: 2}}
parameters: {{inline: {{min: 100, max: 300, step: 100, log: false}}}}
"""


@pytest.fixture
def shell(embedded_service: EmbeddedService, tmp_path: Path) -> Shell:
    return Shell(tmp_path, TRIMTAB_URL=embedded_service.grpc_address, TRIMTAB_TOKEN=embedded_service.token)


@pytest.fixture
def component(name: str) -> str:
    return f"grid-{name}"


@pytest.fixture
def file(tmp_path: Path, component: str) -> str:
    path = tmp_path / "grid.yaml"
    path.write_text(FILE.format(component=component))
    return str(path)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_whole_grid_with_replicates_becomes_a_table(
    shell: Shell, embedded_service: EmbeddedService, component: str, file: str, tmp_path: Path
) -> None:
    table = tmp_path / "grid.csv"
    with agent(embedded_service.grpc_address, embedded_service.token, component):
        run = shell.run("measure-grid", file, "--replicates", "2", "--out", str(table))
        assert run.returncode == 0, run.stderr
        # the same command again finds it done
        assert shell.succeed("measure-grid", file, "--replicates", "2", "--out", str(table)) == run.stdout
        shown = json.loads(shell.succeed("measure-grid", file, "--replicates", "2", "--out", str(table), "--json"))
        assert (shown["state"], shown["file"], shown["replay"]) == ("COMPLETED", str(table), run.stdout.strip())
        refused = shell.fail("measure-grid", file, "--replicates", "3", "--out", str(table))
    assert "[study_exists]" in refused
    assert "--name" in refused
    found = rows(table)
    counts = Counter((row["inline"], row["unroll"]) for row in found)
    # the component's default is measured once more, as in every study
    assert sum(counts.values()) in (12, 13)
    assert len(counts) == 6
    assert min(counts.values()) == 2
    order = [(row["inline"], row["unroll"]) for row in found]
    assert order != sorted(order)
    assert run.stdout == f"trimtab-service replay {table} --parameters inline,unroll --metric seconds\n"
    subject = load(table, Selection(parameters=["inline", "unroll"], metrics=["seconds"]))
    assert subject.optimum == 1


def test_ctrl_c_writes_finished_measurements_and_the_same_command_continues(
    shell: Shell, embedded_service: EmbeddedService, component: str, file: str, tmp_path: Path
) -> None:
    table = tmp_path / "grid.csv"
    with agent(embedded_service.grpc_address, embedded_service.token, component, works=False):
        process = subprocess.Popen(
            [*COMMAND, "measure-grid", file, "--sample", "3", "--out", str(table)],
            env=shell.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert process.stderr.readline() == f"Study {component}-small-grid\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "0 measurements written" in err
    assert rows(table) == []
    with agent(embedded_service.grpc_address, embedded_service.token, component):
        shell.succeed("measure-grid", file, "--sample", "3", "--out", str(table))
    assert len({(row["inline"], row["unroll"]) for row in rows(table)}) in (3, 4)


def test_a_component_is_needed(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("parameters: {x: {type: int, min: 1, max: 3}}\nobjectives: [{minimize: seconds}]\n")
    assert "a component that an agent offers" in shell.fail("measure-grid", str(path))


SPEC = StudySpec(
    space=(
        trimtab.Categorical("alg", ["a", "b"]),
        trimtab.Categorical("code", [0, 1]),
        trimtab.Bool("huge"),
        trimtab.Int("pages", 1, 2, when=("huge", [True])),
    ),
    objectives=(trimtab.Minimize("seconds"), trimtab.Maximize("rate")),
    constraints=(),
    algorithm="shuffled-grid",
    algorithm_options={},
    seed=0,
    noisy=True,
    max_trials=None,
    max_time=None,
    execution=None,
)


def trial(number: int, state: TrialState, **params: object) -> Trial:
    metrics = {"seconds": float(number), "rate": 2.0} if state is TrialState.COMPLETED else {}
    return Trial("s", number, state, params, metrics, (), "", "", "host", 1, "suggested", None, None, None, node="n1")


def test_cells_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    done = [
        trial(1, TrialState.COMPLETED, alg="a", code=1, huge=False),
        trial(2, TrialState.INFEASIBLE, alg="b", code=1, huge=False),
        trial(3, TrialState.COMPLETED, alg="b", code=0, huge=True, pages=2),
    ]
    assert write(path, SPEC, done) == 2
    assert path.read_text().splitlines() == [
        "alg,code,huge,pages,seconds,rate,trial.number,trial.seconds,trial.agent,trial.node,trial.started_at",
        "a,1,false,,1.0,2.0,1,,host,n1,",
        "b,0,true,2,3.0,2.0,3,,host,n1,",
    ]
    assert replay_command(path, SPEC) == (
        f"trimtab-service replay {path} --parameters alg,code,huge,pages --categorical code --conditional pages"
        " --metric seconds,rate:max"
    )


def test_a_table_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(trimtab.errors.InvalidInput, match="cannot be written"):
        write(tmp_path / "nowhere" / "t.csv", SPEC, [])
