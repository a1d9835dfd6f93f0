"""Replays from one search to a whole comparison by the command."""

import csv
import dataclasses
import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from typer.testing import CliRunner, Result

from service.core.errors import AlreadyExists, InvalidInput, JsonValue
from service.main import app
from service.replay import bench, peers, simulators
from service.replay.interference import Quiet
from service.replay.replay_record import Contestant, Run
from service.replay.run import Terms, contestants, replay
from service.replay.subject import Subject
from tests.factories.patience import PATIENCE, wait_for

RANDOM = Contestant("random", "none")
TERMS = Terms(budget=12, start=4)


def table(tmp_path: Path) -> Path:
    """A grid of 6 times 5 with two replicates each, best at (4, 3)."""
    path = tmp_path / "runs.csv"
    lines = [
        f"{a},{b},{10 + (a - 4) ** 2 + 2 * (b - 3) ** 2 + 0.2 * repeat}"
        for repeat in (0, 1)
        for a in range(1, 7)
        for b in range(1, 6)
    ]
    path.write_text("\n".join(["a,b,seconds", *lines]) + "\n")
    return path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["replay", *map(str, arguments)], catch_exceptions=False)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def same(first: Run, second: Run) -> bool:
    """But for the computing time."""
    return dataclasses.replace(first, computing=0.0) == dataclasses.replace(second, computing=0.0)


# --- one search


@pytest.mark.parametrize("algorithm", ["random", "ga", "sa"])
def test_the_same_arguments_give_the_same_search(algorithm: str) -> None:
    subject = simulators.create("sbb-noisy")
    first, second, other = (replay(subject, Contestant(algorithm, "none"), seed, TERMS) for seed in (3, 3, 4))
    assert same(first, second)
    assert first.rows != other.rows
    assert len(first.rows) == 12
    assert len(first.final) == 1
    assert first.final[0] in first.rows


def test_a_run_survives_json() -> None:
    run = replay(simulators.create("branin"), RANDOM, 0, TERMS)
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_recommendations_are_asked_for_on_the_way_with_noise() -> None:
    run = replay(simulators.create("sbb-noisy"), RANDOM, 0, TERMS)
    assert [place for place, row in enumerate(run.recommended, start=1) if row >= 0] == [5, 10]


def test_a_policy_measures_again() -> None:
    subject = simulators.create("sbb-noisy")
    run = replay(subject, Contestant("random", "static"), 0, Terms(budget=30, start=4))
    assert len(set(run.rows)) < 24


def test_a_configuration_missing_from_the_table_is_infeasible() -> None:
    whole = simulators.create("branin")
    left = {number: row for row, number in enumerate(range(0, len(whole.truth), 2))}
    half = dataclasses.replace(whole, truth=whole.truth[::2], rows=left, answers=Quiet(whole.truth[::2]))
    run = replay(half, RANDOM, 1, Terms(budget=30, start=4))
    assert 5 < run.rows.count(-1) < 25
    for row, values, seconds in zip(run.rows, run.values, run.seconds, strict=True):
        assert (row < 0) == (not values) == (seconds is None)


def test_several_objectives_end_with_a_front() -> None:
    run = replay(simulators.create("zdt1"), Contestant("nsga2", "none"), 0, Terms(budget=40, start=10))
    assert len(run.final) > 1
    assert set(run.final) <= set(run.rows)
    assert set(run.recommended) == {-1}


def test_a_small_space_is_exhausted() -> None:
    subject = simulators.create("branin")
    terms = Terms(budget=2000, start=4, options={"shuffled-grid": {"replicates": 1}})
    run = replay(subject, Contestant("shuffled-grid", "none"), 0, terms)
    assert sorted(run.rows) == list(range(961))
    assert run.reason


def test_a_stopping_rule_ends_the_search() -> None:
    subject = simulators.create("sbb-1")
    rule: JsonValue = {"rule": "trials", "trials": 7}
    run = replay(subject, RANDOM, 0, Terms(budget=50, start=4, stopping=rule))
    assert len(run.rows) == 7
    assert run.reason


@pytest.mark.parametrize("name", [name for name in peers.NAMES if name.startswith("optuna") and "gp" not in name])
def test_other_libraries_take_part(name: str) -> None:
    pytest.importorskip("optuna")
    pytest.importorskip("cmaes")
    subject = simulators.create("sbb-noisy")
    first, second = (replay(subject, Contestant(name, "none"), 5, TERMS) for _ in range(2))
    assert same(first, second)
    best = min(range(12), key=lambda place: first.values[place][0])
    assert list(first.final) == [first.rows[best]]


# --- who takes part


def test_contestants_are_all_pairs_and_peers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = simulators.create("sbb-noisy")
    monkeypatch.setattr(peers, "find_spec", lambda name: object())
    found = contestants(subject, ["random", "ga", "optuna-tpe"], ["none", "static", "default"], TERMS)
    assert [str(one) for one in found] == [
        *("random", "random + static"),
        *("ga", "ga + static", "ga + closing"),
        "optuna-tpe",
    ]


@pytest.mark.parametrize(
    ("algorithms", "policies", "options", "field", "allowed"),
    [
        (["annealing2"], ["none"], {}, "algorithms", "random"),
        (["random"], ["often"], {}, "resampling", "static"),
        (["random"], ["none"], {"ga": {"mutation": 0.1}}, "option", "none, random"),
        (["ga"], ["none"], {"ga": {"mutations": 0.1}}, "algorithm.options.mutations", "mutation"),
        (["ga"], ["none"], {"ga": {"mutation": 2}}, "algorithm.options.mutation", "0 to 1"),
    ],
)
def test_contestants_that_cannot_take_part_are_named(
    algorithms: list[str], policies: list[str], options: dict[str, dict[str, JsonValue]], field: str, allowed: str
) -> None:
    terms = Terms(budget=12, start=4, options=options)
    with pytest.raises(InvalidInput) as caught:
        contestants(simulators.create("sbb-noisy"), algorithms, policies, terms)
    assert caught.value.data["field"] == field
    assert allowed in str(caught.value.data["allowed"])


def test_a_library_that_is_not_installed_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'trimtab-service\[compare\]'"):
        contestants(simulators.create("sbb-noisy"), ["ax"], ["none"], TERMS)


def test_a_peer_for_one_objective_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: object())
    with pytest.raises(InvalidInput, match="2 objectives"):
        contestants(simulators.create("zdt1"), ["optuna-cmaes"], ["none"], TERMS)


# --- many


def plan(subject: Subject, seeds: list[int], budget: int = 12) -> bench.Plan:
    return bench.Plan(subject=subject, terms=Terms(budget=budget, start=4), contestants=[RANDOM], seeds=seeds)


def test_a_broken_off_line_is_made_again(tmp_path: Path) -> None:
    subject = simulators.create("branin")
    whole = plan(subject, [0, 1])
    store = bench.Store.open(tmp_path, whole)
    bench.make(whole, store, jobs=2)
    path = tmp_path / "runs.jsonl"
    text = path.read_text()
    path.write_text(text[:-40])
    again = bench.Store.open(tmp_path, whole)
    assert len(again.runs) == 1
    made: list[Run] = []
    bench.make(whole, again, jobs=1, each=made.append)
    assert len(made) == 1
    final = bench.Store.open(tmp_path, whole)
    for pair, run in store.runs.items():
        assert same(final.runs[pair], run)


def test_other_conditions_need_another_folder(tmp_path: Path) -> None:
    subject = simulators.create("branin")
    bench.Store.open(tmp_path, plan(subject, [0]))
    bench.Store.open(tmp_path, plan(subject, [1, 2]))  # more seeds are the same comparison
    with pytest.raises(AlreadyExists, match=r"budget differ.*--out"):
        bench.Store.open(tmp_path, plan(subject, [0], budget=13))
    moved = dataclasses.replace(subject, truth=subject.truth + np.where(np.arange(961) == 5, 1.0, 0.0)[:, None])
    with pytest.raises(AlreadyExists, match="digest"):
        bench.Store.open(tmp_path, plan(moved, [0]))


# --- the command. The first plot on a machine starts `fc-list`: Matplotlib looks for fonts.


def test_a_comparison_from_the_command_line(tmp_path: Path, programs_start: None) -> None:
    out = tmp_path / "out"
    compressed = tmp_path / "runs.csv.gz"
    compressed.write_bytes(gzip.compress(table(tmp_path).read_bytes()))
    arguments: list[object] = [
        compressed, "--parameters", "a,b", "--metric", "seconds", "--default", "a=1,b=1",
        "--algorithms", "random,ga", "--resampling", "none,static", "--seeds", "0-1", "--budget", 12, "--start", 4,
        "--jobs", 2, "--out", out,
    ]  # fmt: skip
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    assert "AvgDistOpt: distance of the recommended configuration" in " ".join(result.output.split())
    summary = rows(out / "summary.csv")
    assert [(row["algorithm"], row["resampling"], row["runs"]) for row in summary] == [
        ("random", "none", "2"),
        ("random", "static", "2"),
        ("ga", "none", "2"),
        ("ga", "static", "2"),
    ]
    for row in summary:
        assert 0 <= float(row["AvgDistOpt_median"]) < 200
        # the best has 10.1 seconds, the default 27.1
        recommended = 10.1 * (1 + float(row["AvgDistOpt_mean"]) / 100)
        assert float(row["ImprovementDefault_mean"]) == pytest.approx(100 * (1 - recommended / 27.1))
        assert row["Hypervolume_mean"] == ""
        assert row["Duration_mean"] == ""
    curves = rows(out / "trajectories.csv")
    assert len(curves) == 4 * 2 * 12
    best = [float(row["median"]) for row in curves if (row["algorithm"], row["curve"]) == ("ga", "best")]
    assert best[:12] == sorted(best[:12], reverse=True)
    for name in ("best", "recommended", "ends"):
        assert "</svg>" in (out / f"{name}.svg").read_text()
    # a second call with the same arguments writes nothing
    before = (out / "runs.jsonl").read_bytes()
    again = invoke(*arguments)
    assert "8 of 8 runs are in" in again.output
    assert (out / "runs.jsonl").read_bytes() == before
    assert rows(out / "summary.csv") == summary


def test_two_objectives_from_the_command_line(tmp_path: Path, programs_start: None) -> None:
    result = invoke(
        "sbb-threads", "--algorithms", "random", "--seeds", "0,3", "--budget", 8, "--start", 4, "--out", tmp_path / "o"
    )
    assert result.exit_code == 0, result.output
    [summary] = rows(tmp_path / "o" / "summary.csv")
    assert 0 <= float(summary["Hypervolume_median"]) <= 1
    assert summary["DistOpt_mean"] == ""
    assert (tmp_path / "o" / "hypervolume.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sbb-9"], "subject: 'sbb-9' is not allowed. Use a file that ends in .csv"),
        (["sbb-1", "--algorithms", "magic"], "algorithms: 'magic' is not allowed. Use one of"),
        (["sbb-1", "--resampling", "often"], "resampling: 'often' is not allowed. Use one of default"),
        (["sbb-1", "--seeds", "9-0"], "seeds: '9-0'"),
        (["sbb-1", "--seeds", "x"], "seeds: 'x' is not allowed. Use numbers and ranges"),
        (["sbb-1", "--budget", "0"], "budget: 0 is not allowed. Use an integer from 1"),
        (["sbb-1", "--start", "101"], "start: 101 is not allowed. Use an integer from 1 to 100"),
        (["sbb-1", "--jobs", "0"], "jobs: 0"),
        (["sbb-1", "--noise", "loud"], "noise: 'loud' is not allowed. Use one of none"),
        (["sbb-1", "--metric", "seconds"], "metric: 'seconds' is not allowed"),
        (["sbb-1", "--option", "random"], "option: 'random' is not allowed. Use NAME.KEY=VALUE"),
        (
            ["sbb-1", "--algorithms", "random", "--option", "random.x=1"],
            "algorithm.options.x: 1 belongs to an unknown option",
        ),
        (["sbb-1", "--stopping", "soon"], "stopping: 'soon' is not allowed. Use JSON"),
        (["sbb-1", "--stopping", '{"rule": "soon"}'], "soon"),
        (["none.csv", "--parameters", "a", "--metric", "b"], "none.csv"),
        (
            ["TABLE", "--parameters", "a,c", "--metric", "seconds"],
            "parameters: 'c' is not allowed. Use columns of the table",
        ),
        (["TABLE", "--parameters", "a,b", "--metric", "speed"], "metric: 'speed'"),
        (["TABLE", "--parameters", "a,b"], "metric: a value is missing"),
        (
            ["TABLE", "--parameters", "a,b", "--metric", "seconds", "--where", "a"],
            "where: 'a' is not allowed. Use COLUMN=VALUE",
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path: Path, arguments: list[str], message: str) -> None:
    given = [str(table(tmp_path)) if argument == "TABLE" else argument for argument in arguments]
    result = invoke(*given, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_simulators_are_listed() -> None:
    lines = invoke("list").output.splitlines()
    assert [line.split()[0] for line in lines] == list(simulators.names())


def long_replay(out: Path) -> "subprocess.Popen[str]":
    """A replay in a process of its own that has finished some of its runs."""
    command = [
        sys.executable, "-m", "service.main", "replay", "sbb-noisy", "--algorithms", "ga", "--resampling", "none",
        "--seeds", "0-400", "--budget", "150", "--jobs", "2", "--out", str(out),
    ]  # fmt: skip
    environment = {**os.environ, "COLUMNS": "120"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    runs = out / "runs.jsonl"
    wait_for(lambda: runs.exists() and runs.stat().st_size)
    return process


def test_a_killed_replay_leaves_no_process(tmp_path: Path, programs_start: None) -> None:
    process = long_replay(tmp_path)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) >= 2
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert psutil.wait_procs(workers, timeout=PATIENCE)[1] == []


def test_ctrl_c_keeps_the_finished_runs(tmp_path: Path, programs_start: None) -> None:
    process = long_replay(tmp_path)
    runs = tmp_path / "runs.jsonl"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "of 401 runs are kept. The same command continues" in out
    kept = runs.read_text().splitlines()
    assert 0 < len(kept) < 401
    for line in kept:
        Run.from_json(json.loads(line))


def test_an_option_whose_value_is_plain_text(tmp_path: Path, programs_start: None) -> None:
    result = invoke(
        "sbb-1", "--algorithms", "ga", "--option", "ga.selection=roulette", "--seeds", "0", "--budget", "12",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    result = invoke("sbb-1", "--algorithms", "ga", "--option", "ga.selection=lottery", "--out", tmp_path / "no")
    assert result.exit_code == 2
    assert "'lottery' is not allowed. Use one of tournament, roulette" in result.stderr
