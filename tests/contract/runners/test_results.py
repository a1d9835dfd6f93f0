"""Outcomes and results of jobs in every runner."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract.runners.jobs import job, left_behind, metric, run, shell
from tests.factories.patience import PATIENCE, wait_for_async
from trimtab_agent.runners.base import JobState, Outcome, Runner


async def test_elapsed_is_the_applications_own_running_time(runner: Runner, folder: Path) -> None:
    assert await runner.elapsed(folder) is None
    header, gate = folder / "work" / "header", folder / "work" / "gate"
    script = 'until [ -e "$0" ]; do sleep 0.02; done'
    spec = job(folder, "sh", "-c", script, str(gate), header=[["sh", "-c", script, str(header)]], repeats=2)
    await runner.submit(folder, spec)
    await wait_for_async(lambda: (folder / "log").exists())
    await asyncio.sleep(0.2)
    assert await runner.elapsed(folder) is None, "a header command is not the application"
    began = time.monotonic()
    header.touch()
    await wait_for_async(lambda: (folder / "running").exists())
    await asyncio.sleep(0.3)
    seconds = await runner.elapsed(folder)
    assert seconds is not None
    assert 0.25 <= seconds <= time.monotonic() - began, "the header's time is no part of it"
    gate.touch()
    result = await asyncio.wait_for(runner.wait(folder), PATIENCE)
    assert await runner.elapsed(folder) == result.elapsed


async def test_an_unreadable_start_time_gives_no_elapsed_time(runner: Runner, folder: Path) -> None:
    (folder / "running").mkdir()  # cannot be read
    assert await runner.elapsed(folder) is None


async def test_a_completed_trial_has_its_metrics_and_node(runner: Runner, nodes: list[str], folder: Path) -> None:
    assert await runner.status(folder) is JobState.ABSENT
    began = time.monotonic()
    result = await run(runner, folder, shell(folder, 'sleep 0.2; echo "$GIVEN"; pwd; echo oops >&2'))
    assert result.outcome is Outcome.COMPLETED
    assert 0.2 <= result.metrics["seconds"] <= time.monotonic() - began
    assert result.elapsed == result.metrics["seconds"]
    assert result.node in nodes
    assert await asyncio.wait_for(runner.started(folder), PATIENCE) == result.node
    assert await runner.status(folder) is JobState.ENDED
    assert result.interference is not None
    assert set(result.interference) >= {"share", "wait", "steal", "swapped", "memory"}
    assert 0 <= result.interference["wait"] < 1
    log = (folder / "log").read_text()
    assert log.startswith("$ sh -c ")
    assert "a b\n" in log
    assert f"{folder}/work\n" in log
    assert "oops\n" in log
    # the result can be had again, by another runner too
    assert await runner.wait(folder) == result


@pytest.mark.without_ray
@pytest.mark.parametrize(
    ("script", "outcome", "words"),
    [
        ("echo why >&2; exit 3", Outcome.INFEASIBLE, "ended with exit code 3\nwhy"),
        ("kill -SEGV $$", Outcome.INFEASIBLE, "was ended by SIGSEGV"),
        # Nothing of the trial explains it, so it may be somebody, or a machine without memory.
        (
            "echo why; kill -KILL $$",
            Outcome.FAILED,
            "command: was ended by SIGKILL, and no limit of the trial explains",
        ),
        ("sh -c 'kill -KILL $$'; exit $?", Outcome.FAILED, "ended with exit code 137, and no limit of the trial"),
        ("echo worn out; exit 75", Outcome.FAILED, "exit code 75, which `exit_codes: failed` lists\nworn out"),
    ],
)
async def test_exit(runner: Runner, folder: Path, script: str, outcome: Outcome, words: str) -> None:
    result = await run(runner, folder, shell(folder, script, failed_exit_codes=[75]))
    assert (result.outcome, result.metrics) == (outcome, {})
    assert words in result.reason


@pytest.mark.without_ray
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": ["no-such-program"]}, "command: 'no-such-program' cannot be started: not found in PATH"),
        ({"command": ["./text"]}, "no '#!' line"),
        ({"command": ["./crlf"]}, "'./crlf' cannot be started: its lines end with CRLF, as on Windows"),
        ({"command": ["./odd"]}, "its interpreter does not exist: '#!/no/such/shell'"),
        ({"command": ["sh", "a\0b"]}, "cannot be started"),
        ({"cwd": "/no/such/folder"}, "'true' cannot be started: its folder /no/such/folder does not exist"),
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
    script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000' & sleep 1000"
    await runner.submit(folder, shell(folder, script, timeout=0.3))
    waiting = asyncio.create_task(runner.wait(folder))
    result = await asyncio.wait_for(waiting, PATIENCE)
    assert result.outcome is Outcome.INFEASIBLE
    assert result.reason.startswith("did not end within 0.3 s")
    assert left_behind(folder) == []


@pytest.mark.without_ray
async def test_sigterm_comes_before_sigkill(runner: Runner, folder: Path) -> None:
    script = "trap 'echo bye; exit 0' TERM; sleep 1000 & wait"
    result = await run(runner, folder, shell(folder, script, timeout=1.0, grace=PATIENCE))
    assert result.outcome is Outcome.INFEASIBLE
    assert "bye" in result.reason


async def test_processes_that_a_trial_leaves_are_ended_with_it(runner: Runner, folder: Path) -> None:
    result = await run(runner, folder, shell(folder, "(setsid sleep 1000 &) ; sleep 1000 & true"))
    assert result.outcome is Outcome.COMPLETED
    assert left_behind(folder) == []


@pytest.mark.without_ray
async def test_a_gigabyte_of_output(runner: Runner, folder: Path) -> None:
    script = "echo first; head -c 1000000000 /dev/zero; echo; echo last=7"
    last = metric("last", "regex", pattern=r"last=(\d)")
    spec = shell(folder, script, metrics=[last], required=["last"], stream_limit=10_000)
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
