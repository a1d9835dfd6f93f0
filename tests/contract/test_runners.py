"""What every runner promises (trimtab_agent/runners/base.py). A new runner joins by an entry in RUNNERS."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from trimtab_agent.components.schema import Metric
from trimtab_agent.runners.base import BuildSpec, JobResult, JobSpec, JobState, Outcome, Runner
from trimtab_agent.runners.local import LocalRunner
from trimtab_agent.runners.ray import RayRunner
from trimtab_agent.runners.slurm import SlurmRunner

# Tests never count on speed: whatever takes longer than this hangs.
PATIENCE = 60.0
RUNNERS = ["local", "slurm", "ray"]
# What the supervisor does alike in every batch job: Slurm's show it, and those of Ray take seconds each. (That many of
# Ray's are looked at together, tests/agent/test_ray.py shows.)
ALIKE_IN_BATCH_JOBS = {
    "test_many_at_a_time",
    "test_exit",
    "test_faults_of_the_machine",
    "test_sigterm_comes_before_sigkill",
    "test_metrics_of_every_kind",
    "test_metric_that_is_not_found",
    "test_a_costly_pattern_does_not_hold_a_cancellation_up",
    "test_repeats_are_aggregated_and_prepared_each_time",
    "test_measurements_come_while_the_application_runs",
    "test_steps_without_numbers_are_counted_and_many_are_thinned",
    "test_a_costly_pattern_of_a_stream_ends_the_stream_alone",
    "test_a_gigabyte_of_output",
    "test_build_is_not_part_of_the_time",
    "test_build_that_fails",
    "test_build_that_fails_by_the_machines_fault",
    "test_a_trial_that_fills_the_disk_has_a_result",
    "test_output_that_a_full_disk_has_lost_is_not_the_configurations_fault",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    assert set(dir(metafunc.module)) >= ALIKE_IN_BATCH_JOBS
    if "make_runner" in metafunc.fixturenames:
        alike = metafunc.function.__name__ in ALIKE_IN_BATCH_JOBS
        metafunc.parametrize("make_runner", RUNNERS[:2] if alike else RUNNERS, indirect=True)


@pytest.fixture
def make_runner(request: pytest.FixtureRequest) -> Callable[[], Runner]:
    if request.param == "ray":
        return partial(RayRunner, request.getfixturevalue("ray_session").dashboard)
    if request.param == "slurm":
        request.getfixturevalue("slurm")
        return SlurmRunner
    return LocalRunner


@pytest.fixture
def nodes(make_runner: Callable[[], Runner], request: pytest.FixtureRequest) -> list[str]:
    """Where a job may run."""
    if make_runner is SlurmRunner:
        found: list[str] = request.getfixturevalue("slurm").nodes
        return found
    return [os.uname().nodename]


@pytest.fixture
def runner(make_runner: Callable[[], Runner]) -> Iterator[Runner]:
    made = make_runner()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The job's folder. At the end no process of the job may be left."""
    made = tmp_path / "job"
    (made / "work").mkdir(parents=True)
    yield made
    assert left_behind(made) == []


def left_behind(folder: Path) -> list[str]:
    """Command lines of processes whose environment names the job. The job's keeper has some moments to end after it
    has left the result."""
    # less than what a test has them sleep
    give_up = time.monotonic() + 20.0
    while (found := _processes_of(folder)) and time.monotonic() < give_up:
        time.sleep(0.02)
    return found


def _processes_of(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and str(folder).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def metric(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    made = {"name": name, "kind": kind, "source": "stdout", "pattern": "", "take": "last", "path": "", "file": ""}
    assert set(made) | {"function", "timeout"} == set(Metric.__dataclass_fields__)
    return {**made, "function": "", "timeout": PATIENCE, **fields}


SECONDS = metric("seconds", "wall_time")


def job(folder: Path, *command: str, **fields: Any) -> JobSpec:
    environment = {"PATH": os.environ["PATH"]}
    spec = JobSpec(
        name="study/1",
        work=str(folder / "work"),
        cwd=str(folder / "work"),
        command=command,
        env={**environment, "GIVEN": "a b"},
        own_env=["GIVEN"],
        base_env=environment,
        timeout=30.0,
        metrics=[SECONDS],
        required=["seconds"],
        params={"p": 1},
        python=sys.executable,
        grace=0.3,
    )
    return replace(spec, **fields)


def shell(folder: Path, script: str, **fields: Any) -> JobSpec:
    return job(folder, "sh", "-c", script, **fields)


async def run(runner: Runner, folder: Path, spec: JobSpec) -> JobResult:
    await runner.submit(folder, spec)
    return await asyncio.wait_for(runner.wait(folder), PATIENCE)


# How often a time is taken where it is promised: the quickest counts, for what else a machine does can only add to it.
ATTEMPTS = 3


def another(folder: Path, attempt: int) -> Path:
    """The folder of one more job of the test's."""
    made = folder / str(attempt)
    (made / "work").mkdir(parents=True)
    return made


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  the condition is in the file system
            await asyncio.sleep(0.01)


# -- results


async def test_elapsed_is_the_applications_own_running_time(runner: Runner, folder: Path) -> None:
    assert await runner.elapsed(folder) is None
    header, gate = folder / "work" / "header", folder / "work" / "gate"
    script = 'until [ -e "$0" ]; do sleep 0.02; done'
    spec = job(folder, "sh", "-c", script, str(gate), header=[["sh", "-c", script, str(header)]], repeats=2)
    await runner.submit(folder, spec)
    await until(lambda: (folder / "log").exists())
    await asyncio.sleep(0.2)
    assert await runner.elapsed(folder) is None, "a header command is not the application"
    header.touch()
    await until(lambda: (folder / "running").exists())
    await asyncio.sleep(0.3)
    seconds = await runner.elapsed(folder)
    assert seconds is not None
    assert 0.25 <= seconds < 5
    gate.touch()
    result = await asyncio.wait_for(runner.wait(folder), PATIENCE)
    assert await runner.elapsed(folder) == result.elapsed


async def test_how_long_it_has_been_running_cannot_always_be_told(runner: Runner, folder: Path) -> None:
    (folder / "running").mkdir()  # cannot be read
    assert await runner.elapsed(folder) is None


async def test_completed(runner: Runner, nodes: list[str], folder: Path) -> None:
    assert await runner.status(folder) is JobState.ABSENT
    result = await run(runner, folder, shell(folder, 'sleep 0.2; echo "$GIVEN"; pwd; echo oops >&2'))
    assert result.outcome is Outcome.COMPLETED
    assert 0.2 <= result.metrics["seconds"] < 5
    assert result.elapsed == result.metrics["seconds"]
    assert result.node in nodes
    assert await asyncio.wait_for(runner.started(folder), PATIENCE) == result.node
    assert await runner.status(folder) is JobState.ENDED
    log = (folder / "log").read_text()
    assert log.startswith("$ sh -c ")
    assert "a b\n" in log
    assert f"{folder}/work\n" in log
    assert "oops\n" in log
    # the result can be had again, by another runner too
    assert await runner.wait(folder) == result


@pytest.mark.parametrize(
    ("script", "outcome", "words"),
    [
        ("echo why >&2; exit 3", Outcome.INFEASIBLE, "ended with exit code 3\nwhy"),
        ("kill -SEGV $$", Outcome.INFEASIBLE, "was ended by SIGSEGV"),
        ("echo worn out; exit 75", Outcome.FAILED, "exit code 75, which means the machine's fault\nworn out"),
    ],
)
async def test_exit(runner: Runner, folder: Path, script: str, outcome: Outcome, words: str) -> None:
    result = await run(runner, folder, shell(folder, script, failed_exit_codes=[75]))
    assert (result.outcome, result.metrics) == (outcome, {})
    assert words in result.reason


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": ["no-such-program"]}, "command: 'no-such-program' cannot be started: not found in PATH"),
        ({"command": ["./text"]}, "no '#!' line"),
        ({"command": ["./crlf"]}, "'./crlf' cannot be started: its lines end with CRLF, as on Windows"),
        ({"command": ["./odd"]}, "the interpreter that it names is not there: '#!/no/such/shell'"),
        ({"command": ["sh", "a\0b"]}, "cannot be started"),
        ({"cwd": "/no/such/folder"}, "'true' cannot be started: its folder /no/such/folder is not there"),
        ({"header": [["no-such-header"]]}, "header: 'no-such-header' cannot be started"),
        ({"header": [["sh", "-c", "echo cold; exit 4"]]}, "header: sh ended with exit code 4\ncold"),
    ],
)
async def test_faults_of_the_machine(runner: Runner, folder: Path, fields: dict[str, Any], words: str) -> None:
    scripts = {"text": "not a program", "crlf": "#!/bin/sh\r\necho hello\r\n", "odd": "#!/no/such/shell\n"}
    for name, text in scripts.items():
        script = folder / "work" / name
        script.write_text(text, newline="")
        script.chmod(0o755)
    result = await run(runner, folder, replace(job(folder, "true"), **fields))
    assert result.outcome is Outcome.FAILED
    assert words in result.reason


async def test_time_out_ends_everything(runner: Runner, folder: Path) -> None:
    # children that leave the session and ignore SIGTERM are ended as well
    script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60' & sleep 60"
    await runner.submit(folder, shell(folder, script, timeout=0.3))
    waiting = asyncio.create_task(runner.wait(folder))
    await until(lambda: (folder / "running").exists() or waiting.done())
    started = time.monotonic()
    result = await asyncio.wait_for(waiting, PATIENCE)
    assert time.monotonic() - started < 30  # not the 60 s that it asks for
    assert result.outcome is Outcome.INFEASIBLE
    assert result.reason.startswith("did not end within 0.3 s")
    assert left_behind(folder) == []


async def test_sigterm_comes_before_sigkill(runner: Runner, folder: Path) -> None:
    result = await run(runner, folder, shell(folder, "trap 'echo bye; exit 0' TERM; sleep 60 & wait", timeout=0.3))
    assert result.outcome is Outcome.INFEASIBLE
    assert "bye" in result.reason


async def test_what_a_trial_leaves_running_is_ended_with_it(runner: Runner, folder: Path) -> None:
    result = await run(runner, folder, shell(folder, "(setsid sleep 60 &) ; sleep 60 & true"))
    assert result.outcome is Outcome.COMPLETED
    assert result.elapsed < 5
    assert left_behind(folder) == []


async def test_a_gigabyte_of_output(runner: Runner, folder: Path) -> None:
    script = "echo first; head -c 1000000000 /dev/zero; echo; echo last=7"
    last = metric("last", "regex", pattern=r"last=(\d)")
    spec = shell(folder, script, metrics=[last], required=["last"], stream_limit=10_000, timeout=300.0)
    await runner.submit(folder, spec)
    waiting = asyncio.create_task(runner.wait(folder))
    most = 0
    while not waiting.done():
        most = max(most, peak_kib(folder))
        await asyncio.wait([waiting], timeout=0.05)
    assert waiting.result().metrics == {"last": 7}
    assert 0 < most < 48 * 1024, "the supervisor keeps none of it in memory"
    assert (folder / "stdout").stat().st_size < 11_000
    assert (folder / "log").stat().st_size < 66_000
    assert (folder / "stdout").read_bytes().startswith(b"first\n")


def peak_kib(folder: Path) -> int:
    """The most memory that the supervisor has had so far, in KiB; 0 where there is none."""
    try:
        pid = (folder / "pid").read_text().split()[0]
        status = Path(f"/proc/{pid}/status").read_text()
    except (OSError, IndexError):
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


# -- metrics


async def test_metrics_of_every_kind(runner: Runner, folder: Path) -> None:
    (folder / "parse.py").write_text(
        "import csv\n"  # its own imports work
        "def size(run):\n"
        "    assert run.seconds > 0 and run.stderr == 'e\\n' and run.params == {'p': 1}\n"
        "    return len((run.work / 'out.json').read_text()) + len(run.stdout)\n"
    )
    metrics = [
        SECONDS,
        metric("rate", "regex", pattern=r"rate (\S+)", take="max"),
        metric("deep", "json", source="out.json", path="a.1"),
        metric("size", "python", file=str(folder / "parse.py"), function="size"),
        metric("spare", "regex", pattern=r"none (\d)"),
    ]
    script = "echo rate 2; echo rate 3; echo rate 1; echo e >&2; printf '{\"a\": [1, 5]}' > out.json"
    result = await run(runner, folder, shell(folder, script, metrics=metrics, required=["rate", "deep", "size"]))
    assert result.outcome is Outcome.COMPLETED, result.reason
    seconds = result.metrics["seconds"]
    assert result.metrics == {"seconds": seconds, "rate": 3, "deep": 5, "size": 13 + 21}
    assert "[metric 'spare' left out: stdout has nothing that matches" in (folder / "log").read_text()


@pytest.mark.parametrize(
    ("wanted", "outcome", "words"),
    [
        ({"kind": "regex", "pattern": r"x=(\d)"}, Outcome.INFEASIBLE, "stdout has nothing that matches"),
        ({"kind": "json", "path": "x"}, Outcome.INFEASIBLE, "stdout is not JSON"),
        ({"kind": "json", "path": "x", "source": "gone.json"}, Outcome.INFEASIBLE, "gone.json cannot be read"),
        ({"kind": "python", "function": "none"}, Outcome.INFEASIBLE, "parse.py:none found no number"),
        ({"kind": "python", "function": "nan"}, Outcome.INFEASIBLE, "nan is not a finite number"),
        ({"kind": "python", "function": "broken"}, Outcome.FAILED, "parse.py:broken raised KeyError: 'k'"),
        ({"kind": "python", "function": "gone"}, Outcome.FAILED, "raised AttributeError"),
        ({"kind": "python", "function": "crash"}, Outcome.FAILED, "was ended by SIGKILL without an answer"),
        ({"kind": "python", "function": "hang", "timeout": 0.5}, Outcome.FAILED, "did not end within 0.5 s"),
    ],
)
async def test_metric_that_is_not_found(
    runner: Runner, folder: Path, wanted: dict[str, Any], outcome: Outcome, words: str
) -> None:
    (folder / "parse.py").write_text(
        "import os, signal, time\n"
        "def none(run): return None\n"
        "def nan(run): return float('nan')\n"
        "def broken(run): return {}['k']\n"
        "def crash(run): os.kill(os.getpid(), signal.SIGKILL)\n"
        "def hang(run): time.sleep(60)\n"
    )
    spec = metric("m", **{"file": str(folder / "parse.py"), **wanted})
    result = await run(runner, folder, shell(folder, "echo nothing", metrics=[spec], required=["m"]))
    assert result.outcome is outcome
    assert result.reason.startswith("metric 'm': ")
    assert words in result.reason


async def test_a_costly_pattern_does_not_hold_a_cancellation_up(runner: Runner, folder: Path) -> None:
    spec = metric("m", "regex", pattern=r"(a+)+b")
    for attempt in range(ATTEMPTS):
        place = another(folder, attempt)
        await runner.submit(place, shell(place, f"echo {'a' * 40}; touch done", metrics=[spec], required=["m"]))
        await until((place / "work" / "done").exists)
        await asyncio.sleep(0.3)
        started = time.monotonic()
        await runner.cancel(place)
        took = time.monotonic() - started
        assert (await runner.wait(place)).outcome is Outcome.CANCELLED
        if took < 1:
            break
    assert took < 1


async def test_repeats_are_aggregated_and_prepared_each_time(runner: Runner, folder: Path) -> None:
    (folder / "work" / "n").write_text("")
    value = metric("value", "regex", pattern=r"v=(\d)")
    spec = shell(
        folder,
        "echo v=$(wc -c < n)",
        header=[["sh", "-c", "printf x >> n"]],
        repeats=3,
        aggregate="max",
        metrics=[value, SECONDS],
        required=["value"],
    )
    result = await run(runner, folder, spec)
    assert result.metrics["value"] == 3
    assert result.elapsed > result.metrics["seconds"]


# -- what an application tells while it runs


def told(folder: Path) -> list[tuple[int, dict[str, float]]]:
    """The measurements so far."""
    with suppress(FileNotFoundError):
        whole, _, _ = (folder / "measurements").read_text().rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        assert [line["elapsed"] for line in lines] == sorted(line["elapsed"] for line in lines)
        return [(line["step"], line["metrics"]) for line in lines]
    return []


async def test_measurements_come_while_the_application_runs(runner: Runner, folder: Path) -> None:
    """By lines of the output, and of a file that is followed; each whole line once."""
    gate = folder / "work" / "gate"
    script = (
        "echo noise; echo step 1: loss=0.5; echo step 2: loss=nan; printf 'step 3: lo'\n"
        'echo \'{"step": 10, "rate": 7, "name": "x"}\' > told; printf \'{"step": 11, "rate"\' >> told\n'
        f"until [ -e {gate} ]; do sleep 0.02; done\n"
        "echo ss=0.25; echo ': 8}' >> told; printf 'step 4: loss=0.125'"
    )
    streams = [
        {"source": "stdout", "pattern": r"step (?P<step>\d+): loss=(?P<loss>\S+)"},
        {"source": "told", "pattern": ""},
    ]
    await runner.submit(folder, shell(folder, script, stream=streams))
    await until(lambda: sorted(told(folder)) == [(1, {"loss": 0.5}), (10, {"rate": 7})])
    assert await runner.status(folder) is JobState.RUNNING
    gate.touch()
    assert (await asyncio.wait_for(runner.wait(folder), PATIENCE)).outcome is Outcome.COMPLETED
    assert sorted(told(folder)) == [
        (1, {"loss": 0.5}),
        (3, {"loss": 0.25}),
        (4, {"loss": 0.125}),
        (10, {"rate": 7}),
        (11, {"rate": 8}),
    ]


async def test_steps_without_numbers_are_counted_and_many_are_thinned(runner: Runner, folder: Path) -> None:
    spec = shell(folder, "for i in $(seq 1234); do echo v=$i; done", repeats=2)
    result = await run(runner, folder, replace(spec, stream=[{"source": "stdout", "pattern": "v=(?P<v>.*)"}]))
    assert result.outcome is Outcome.COMPLETED
    steps = [*range(1, 100), *range(100, 1000, 10), 1000, 1100, 1200]
    assert told(folder) == [(step, {"v": step}) for step in steps]


async def test_a_costly_pattern_of_a_stream_ends_the_stream_alone(runner: Runner, folder: Path) -> None:
    spec = shell(folder, f"echo {'a' * 40}; sleep 3; echo v=1")
    result = await run(runner, folder, replace(spec, stream=[{"source": "stdout", "pattern": "(?P<v>(a+)+b)|v=(.)"}]))
    assert result.outcome is Outcome.COMPLETED
    assert told(folder) == []
    assert "[stream: reading lines took 2 s, and no more are read" in (folder / "log").read_text()


# -- builds


def build(folder: Path, script: str, **fields: Any) -> BuildSpec:
    entry = folder.parent / "builds" / "key"
    made = BuildSpec(str(entry), [["sh", "-c", script]], {"PATH": os.environ["PATH"]}, PATIENCE, 1 << 30)
    return replace(made, **fields)


async def test_build_is_not_part_of_the_time(runner: Runner, folder: Path) -> None:
    made = build(folder, "sleep 2; echo built > out")
    result = await run(runner, folder, job(folder, "cat", f"{made.entry}/out", build=made))
    assert result.outcome is Outcome.COMPLETED, result.reason
    assert result.build_seconds is not None
    assert result.build_seconds > 2 > result.elapsed
    shutil.rmtree(folder)
    (folder / "work").mkdir(parents=True)
    again = await run(runner, folder, job(folder, "cat", f"{made.entry}/out", build=made))
    assert (again.outcome, again.build_seconds) == (Outcome.COMPLETED, None)


@pytest.mark.parametrize(
    ("script", "fields", "words"),
    [
        ("for i in $(seq 99); do echo line $i; done; exit 2", {}, "build: sh ended with exit code 2\nline 88"),
        ("sleep 60", {"timeout": 0.3}, "build: did not end within 0.3 s"),
    ],
)
async def test_build_that_fails(runner: Runner, folder: Path, script: str, fields: dict[str, Any], words: str) -> None:
    result = await run(runner, folder, job(folder, "true", build=build(folder, script, **fields)))
    assert result.outcome is Outcome.INFEASIBLE
    assert words in result.reason
    assert len(result.reason) < 2000


async def test_build_that_fails_by_the_machines_fault(runner: Runner, folder: Path) -> None:
    made = build(folder, "echo no sources; exit 75")
    result = await run(runner, folder, job(folder, "true", build=made, failed_exit_codes=[75]))
    assert result.outcome is Outcome.FAILED
    assert "build: sh ended with exit code 75\nno sources" in result.reason


# -- cancelling


@pytest.mark.parametrize("step", ["build", "header", "command"])
async def test_cancel(runner: Runner, folder: Path, step: str) -> None:
    for attempt in range(ATTEMPTS):
        place = another(folder, attempt)
        script = f"touch {place}/begun; trap '' TERM; setsid sleep 60 & sleep 60"
        places: dict[str, dict[str, Any]] = {
            "build": {"build": build(place, script)},
            "header": {"header": [["sh", "-c", script]]},
            "command": {"command": ["sh", "-c", script]},
        }
        await runner.submit(place, replace(job(place, "true"), **places[step]))
        await until((place / "begun").exists)
        assert await runner.status(place) is JobState.RUNNING
        started = time.monotonic()
        await runner.cancel(place)
        took = time.monotonic() - started
        assert left_behind(place) == []
        assert (await runner.wait(place)).outcome is Outcome.CANCELLED
        if took < 1:
            break
    assert took < 1


async def test_cancel_at_once(runner: Runner, folder: Path) -> None:
    await runner.submit(folder, job(folder, "sleep", "60"))
    await runner.cancel(folder)
    assert (await runner.wait(folder)).outcome is Outcome.CANCELLED


async def test_cancel_of_what_has_ended_or_never_ran(runner: Runner, folder: Path) -> None:
    await runner.cancel(folder)
    assert await runner.status(folder) is JobState.ABSENT
    result = await run(runner, folder, job(folder, "true"))
    await runner.cancel(folder)
    assert await runner.wait(folder) == result


async def test_cancelling_one_job_leaves_the_next_alone(runner: Runner, folder: Path, tmp_path: Path) -> None:
    """Also where both run in the same place, one after the other."""
    await run(runner, folder, job(folder, "true"))
    other = tmp_path / "other"
    (other / "work").mkdir(parents=True)
    await runner.submit(other, job(other, "sleep", "0.3"))
    await runner.cancel(folder)
    assert (await runner.wait(other)).outcome is Outcome.COMPLETED


# -- crashes


async def test_jobs_are_followed_by_another_runner(make_runner: Callable[[], Runner], folder: Path) -> None:
    first, second = make_runner(), make_runner()
    gate = folder / "work" / "gate"
    await first.submit(folder, shell(folder, f"until [ -e {gate} ]; do sleep 0.02; done; echo end"))
    assert await second.status(folder) in (JobState.QUEUED, JobState.RUNNING)
    gate.touch()
    result = await asyncio.wait_for(second.wait(folder), PATIENCE)
    assert result.outcome is Outcome.COMPLETED
    assert await first.wait(folder) == result
    first.close()
    second.close()


async def test_jobs_are_cancelled_by_another_runner(make_runner: Callable[[], Runner], folder: Path) -> None:
    first, second = make_runner(), make_runner()
    await first.submit(folder, job(folder, "sleep", "60"))
    await second.cancel(folder)
    assert (await second.wait(folder)).outcome is Outcome.CANCELLED
    await first.wait(folder)
    first.close()
    second.close()


async def test_a_job_whose_keeper_is_killed_has_failed_and_is_gone(
    runner: Runner, folder: Path, request: pytest.FixtureRequest
) -> None:
    if isinstance(runner, SlurmRunner) and not request.getfixturevalue("slurm").tracks_all:
        pytest.skip("without cgroups Slurm does not find what a killed supervisor leaves running")
    await runner.submit(folder, shell(folder, f"touch {folder}/begun; setsid sleep 60 & sleep 60"))
    await until((folder / "begun").exists)
    os.kill(int((folder / "pid").read_text().split()[0]), signal.SIGKILL)
    result = await asyncio.wait_for(runner.wait(folder), PATIENCE)
    assert (result.outcome, result.reason) == (Outcome.FAILED, "the trial's supervisor process was killed")
    assert left_behind(folder) == []
    assert await runner.status(folder) is JobState.ABSENT
    # it can be run again, in the same folder
    assert (await run(runner, folder, job(folder, "true"))).outcome is Outcome.COMPLETED


async def test_many_at_a_time(runner: Runner, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(8)]
    for folder in folders:
        (folder / "work").mkdir(parents=True)
    value = metric("value", "regex", pattern=r"v=(\d)")
    specs = [shell(f, f"sleep 0.1; echo v={n}", metrics=[value], required=["value"]) for n, f in enumerate(folders)]
    results = await asyncio.gather(*(run(runner, f, spec) for f, spec in zip(folders, specs, strict=True)))
    assert [result.metrics["value"] for result in results] == list(range(8))


async def test_nothing_stays_when_the_runner_is_closed(make_runner: Callable[[], Runner], folder: Path) -> None:
    # what earlier tests have left, dead children among it, is not this runner's
    before = psutil.Process().children()
    runner = make_runner()
    await run(runner, folder, job(folder, "true"))
    runner.close()
    left = psutil.Process().children()
    assert [child for child in left if child not in before] == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_trial_that_fills_the_disk_has_a_result(runner: Runner, small_disk: Path) -> None:
    (small_disk / "work").mkdir()
    script = "echo before; cat /dev/zero > big; echo v=1; exit 0"
    result = await run(runner, small_disk, shell(small_disk, script))
    assert result.outcome is Outcome.COMPLETED
    assert result.metrics["seconds"] > 0


async def test_output_that_a_full_disk_has_lost_is_not_the_configurations_fault(
    runner: Runner, small_disk: Path
) -> None:
    (small_disk / "work").mkdir()
    value = metric("v", "regex", pattern=r"v=(\d)")
    script = "cat /dev/zero > big; echo v=1; exit 0"
    result = await run(runner, small_disk, shell(small_disk, script, metrics=[value], required=["v"]))
    assert result.outcome is Outcome.FAILED
    assert "the output could not be kept: No space left on device" in result.reason
