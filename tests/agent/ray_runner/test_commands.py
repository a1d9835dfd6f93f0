"""Addresses and options of the agent's commands for Ray."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.agent.conftest import run_agent_command
from tests.agent.ray_runner.board import Far
from tests.agent.slurm_runner.jobs import GATED, job
from tests.factories.patience import wait_for_async
from tests.factories.ports import free_port
from trimtab_agent import trying
from trimtab_agent.errors import ConfigError, SchedulerAwayError
from trimtab_agent.main import main
from trimtab_agent.runners.batch import CANCEL
from trimtab_agent.runners.ray import RayRunner
from trimtab_agent.runners.ray_client import choose_address
from trimtab_agent.runners.slurm_client import PROGRAMS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "http://127.0.0.1:8265"),
        ("http://head:8265/", "http://head:8265"),
        ("https://[::1]/ray/", "https://[::1]/ray"),
        ("ray://head:10001", "http://head:8265"),
        ("ray://[::1]", "http://[::1]:8265"),
        ("head:6379", "http://head:8265"),
        ("head", "try --ray-address=http://head:8265"),
        ("auto", "'auto' is not http://HOST:8265"),
        ("ray://head/path", "is not http://HOST:8265"),
        ("ftp://head", "is not http://HOST:8265"),
        ("http://", "is not http://HOST:8265"),
    ],
)
def test_addresses(given: str | None, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv("RAY_API_SERVER_ADDRESS", raising=False)
    if expected.startswith("http"):
        assert choose_address(given) == expected
        monkeypatch.setenv("RAY_ADDRESS", given or expected)
        assert choose_address(None) == expected
    else:
        with pytest.raises(ConfigError, match=expected):
            choose_address(given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ray-option=--cpus=1"], "scheduler option '--cpus=1' is not an option of Ray. Use --num-cpus=N"),
        (["--ray-option=--num-cpus=all"], "--num-cpus: 'all' is not allowed. Use a number of at least 0."),
        (["--ray-option=--memory=1.5"], "--memory: '1.5' is not allowed. Use a whole number of bytes."),
        (["--ray-option=--resources=[1]"], "Use a JSON object whose values are each a number of at least 0."),
        (['--ray-option=--label-selector={"a": 1}'], "Use a JSON object whose values are each a text."),
        (["--ray-address=ray:head"], "--ray-address 'ray:head' is not http://HOST:8265"),
        (["--trial-cores=1"], "--trial-cores is only valid with --runner local; with ray, use --ray-option"),
        (["--slurm-option=--mem=1"], "--slurm-option '--mem=1' is only valid with --runner slurm"),
        (["--runner", "local", "--ray-option=--num-cpus=1"], "is only valid with --runner ray"),
        (["--runner", "local", "--ray-address=http://head"], "is only valid with --runner ray"),
    ],
)
def test_wrong_options(tmp_path: Path, options: list[str], words: str, programs_start: None) -> None:
    (tmp_path / "c.yaml").write_text(GATED)
    done = run_agent_command(["try", "gated", "--components", str(tmp_path), "--runner", "ray", *options])
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.parametrize("runner", ["ray", "slurm"])
def test_a_try_gives_a_scheduler_up_that_does_not_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    runner: str,
    programs_start: None,
) -> None:
    monkeypatch.setattr(trying, "PATIENCE", 0.5)
    (tmp_path / "c.yaml").write_text(GATED)
    where = ["--components", str(tmp_path), "--state-dir", str(tmp_path / "state"), "--runner", runner]
    if runner == "ray":
        where += [f"--ray-address=http://127.0.0.1:{free_port()}"]
        words = [where[-1].partition("=")[2], "Connection refused", "check that Ray's head is running", "--ray-address"]
    else:
        for program in PROGRAMS:
            (tmp_path / program).write_text(
                "#!/bin/sh\necho 'Unable to contact slurm controller (connect failure)' >&2; exit 1"
            )
            (tmp_path / program).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        words = ["Unable to contact slurm controller", "that slurmctld is running", "SLURM_CONF"]
    with pytest.raises(SystemExit) as end:
        main(["try", "gated", *where])
    assert end.value.code == 1
    reported = capsys.readouterr().err
    for word in ("given up after", *words):
        assert word in reported
    assert list((tmp_path / "state" / "tries").iterdir()) == []


async def test_a_try_ends_its_job_when_the_head_is_lost(
    far: "Far", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trying, "PATIENCE", 0.5)
    folder, spec = job(tmp_path, "one", "true")
    runner = RayRunner(far.address)
    trial = asyncio.create_task(trying._run(folder, spec, runner))
    await wait_for_async(lambda: bool(far.board.jobs))
    far.server.shutdown()
    far.server.server_close()
    with pytest.raises(SchedulerAwayError, match=far.address):
        await trial
    # what a supervisor looks for
    assert (folder / CANCEL).exists()
