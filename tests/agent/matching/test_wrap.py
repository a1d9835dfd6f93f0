"""`trimtab-agent wrap`: settings for a command without a scheduler."""

import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.agent.matching.conftest import POLICY, Matching
from tests.factories.patience import PATIENCE, wait_for
from trimtab_agent._gen import matching_pb2
from trimtab_agent.matching import wrap

PROGRAM = [sys.executable, "-m", "trimtab_agent.start", "wrap", "--timeout", "30"]
SHOW = 'echo "$SOLVER_THREADS|$SOLVER_CACHE|$LD_PRELOAD"'


def run(
    matching: Matching, *command: str, options: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    argv = [*PROGRAM, "--socket", str(matching.socket), *options, "--", *command]
    env = {**os.environ, **environment}
    return subprocess.run(argv, env=env, input="in\n", capture_output=True, text=True, check=False, timeout=PATIENCE)


def test_settings_reach_the_command_and_its_time_the_service(matching: Matching) -> None:
    matching.start()
    done = run(matching, "sh", "-c", f"{SHOW}; cat; echo err >&2; sleep 0.3; exit 3", options=["--name", "ant"])
    assert (done.returncode, done.stdout, done.stderr) == (3, f"8|on|{matching.library}\nin\n", "err\n")
    (report,) = matching.reported()
    assert (report.end, report.job.name, report.job.program) == (matching_pb2.JOB_END_FAILED, "ant", "sh")
    assert (report.job_id, report.considered[0].decision) == ("", matching_pb2.DECISION_APPLIED)
    assert report.seconds >= 0.3
    assert run(matching, "true").returncode == 0
    assert matching.reported(2)[1].end == matching_pb2.JOB_END_COMPLETED


def test_the_user_s_own_values_win(matching: Matching) -> None:
    matching.start()
    assert run(matching, "sh", "-c", SHOW, SOLVER_THREADS="2").stdout == "2||\n"
    own = str(matching.library)
    (matching.library.parent / "own.so").write_bytes(matching.library.read_bytes())
    own = str(matching.library.parent / "own.so")
    assert run(matching, "sh", "-c", SHOW, LD_PRELOAD=own).stdout == f"8|on|{own}:{matching.library}\n"


def test_the_opt_out_asks_nobody(matching: Matching) -> None:
    matching.start()
    assert run(matching, "sh", "-c", SHOW, TRIMTAB_MATCH="off").stdout == "||\n"
    assert matching.far_side.asked == []


def test_verbose_says_what_was_done(matching: Matching) -> None:
    matching.start(POLICY.replace("mode: apply", "mode: dry_run"))
    done = run(matching, "sh", "-c", SHOW, options=["--verbose"])
    assert done.stdout == "||\n"
    assert "record rec1 resembles the job (score 0.93); nothing is changed (dry run)" in done.stderr


@pytest.mark.parametrize("listens", [False, True])
def test_without_an_answer_the_command_runs_unchanged(matching: Matching, listens: bool) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        if listens:
            silent.bind(str(matching.socket))
            silent.listen(8)
        done = run(matching, "sh", "-c", f"{SHOW}; cat; exit 7", options=["--timeout", "0.5"])
    assert (done.returncode, done.stdout, done.stderr) == (7, "||\nin\n", "")


def test_commands_that_cannot_run(matching: Matching, tmp_path: Path) -> None:
    for started in (False, True):
        if started:
            matching.start()
        (tmp_path / "text").write_text("text")
        missing = run(matching, "no-such-program")
        assert (missing.returncode, missing.stderr) == (
            127,
            "trimtab-agent: no-such-program: No such file or directory\n",
        )
        assert run(matching, str(tmp_path / "text")).returncode == 126
    assert run(matching).returncode == 2


def test_the_command_s_signal_is_the_wrapper_s(matching: Matching) -> None:
    matching.start()
    assert run(matching, "sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL
    assert run(matching, "sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV
    assert {one.end for one in matching.reported(2)} == {matching_pb2.JOB_END_FAILED}


def test_signals_are_passed_on(matching: Matching, tmp_path: Path) -> None:
    matching.start()
    script = f"trap 'echo usr1 >> {tmp_path}/got' USR1; trap 'exit 5' TERM; touch {tmp_path}/ready; "
    script += "while :; do sleep 0.05; done"
    argv = [*PROGRAM, "--socket", str(matching.socket), "--", "sh", "-c", script]
    with subprocess.Popen(argv) as process:
        wait_for((tmp_path / "ready").exists)
        process.send_signal(signal.SIGUSR1)
        wait_for((tmp_path / "got").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 5
    assert (tmp_path / "got").read_text() == "usr1\n"


def test_a_terminal_s_interrupt_comes_once(matching: Matching, tmp_path: Path) -> None:
    matching.start()
    script = f"trap 'echo int >> {tmp_path}/got' INT; touch {tmp_path}/ready; "
    script += f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; wc -l < {tmp_path}/got > {tmp_path}/count"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(PROGRAM[0], [*PROGRAM, "--socket", str(matching.socket), "--", "sh", "-c", script])
    try:
        wait_for((tmp_path / "ready").exists)
        os.write(terminal, b"\x03")
        wait_for((tmp_path / "got").exists)
        time.sleep(0.2)  # a second signal would have come by now
        (tmp_path / "go").touch()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (tmp_path / "count").read_text().strip() == "1"
    finally:
        os.close(terminal)


def test_an_agent_that_dies_meanwhile_changes_nothing(matching: Matching, tmp_path: Path) -> None:
    matching.start()
    script = f"touch {tmp_path}/ready; until [ -e {tmp_path}/go ]; do sleep 0.05; done; exit 4"
    argv = [*PROGRAM, "--socket", str(matching.socket), "--", "sh", "-c", script]
    with subprocess.Popen(argv) as process:
        wait_for((tmp_path / "ready").exists)
        matching.agent.kill()
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE) == 4


def test_an_agent_that_starts_again_meanwhile_reports(matching: Matching, tmp_path: Path) -> None:
    matching.start()
    script = f"touch {tmp_path}/ready; until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    argv = [*PROGRAM, "--socket", str(matching.socket), "--", "sh", "-c", script]
    with subprocess.Popen(argv) as process:
        wait_for((tmp_path / "ready").exists)
        matching.agent.kill()
        matching.start()
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE) == 0
    wait_for(lambda: matching.reported()[0].end == matching_pb2.JOB_END_COMPLETED)


def test_it_imports_little(programs_start: None) -> None:
    code = "import sys, trimtab_agent.start, trimtab_agent.matching.wrap; print(*sys.modules)"
    # Coverage would import much.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert not {"yaml", "grpc", "asyncio", "logging", "json"} & set(loaded)


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        wrap.main(["--help"])
    shown = capsys.readouterr().out
    assert "trimtab-agent wrap [options] -- COMMAND" in shown
    assert "TRIMTAB_MATCH=off" in shown
