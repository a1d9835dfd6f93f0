"""The steps of a set-up: one line each with its time, and the details in a file."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def script(tmp_path: Path) -> str:
    return (
        f"set -euo pipefail; source {ROOT}/deploy/checkout/steps.sh; began_steps {tmp_path}/setup.log\n"
        "noisy() { for i in $(seq 50); do echo line $i; echo warning $i >&2; done; sleep 1.1; }\n"
        "broken() { echo the cause; sleep 1.1; return 3; }\n"
    )


def run(text: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False)


def test_a_step_is_one_line_with_its_time(script: str, tmp_path: Path, programs_start: None) -> None:
    done = run(f"{script} step 'quick one' 5 true; step 'installing packages' 60 noisy")
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r"set-up: installing packages \.\.\. \d s\n", done.stderr)
    log = (tmp_path / "setup.log").read_text()
    assert "line 50" in log
    assert "warning 50" in log


def test_a_step_that_fails_names_the_file_with_the_details(script: str, tmp_path: Path, programs_start: None) -> None:
    done = run(f"unset CI; {script} step 'building the console' 60 broken || echo status $?")
    assert done.stdout == "status 3\n"
    assert f"failed after 1 s. All details are in {tmp_path}/setup.log; its last lines:" in done.stderr.replace(
        "2 s", "1 s"
    )
    assert "    the cause" in done.stderr


def test_a_bar_on_a_terminal(script: str, programs_start: None) -> None:
    own, its = pty.openpty()
    process = subprocess.Popen(["bash", "-c", f"{script} step 'building' 4 noisy"], stderr=its)
    os.close(its)
    shown = b""
    try:
        while part := os.read(own, 1024):
            shown += part
    except OSError:
        pass
    assert process.wait() == 0
    assert re.search(r"\[#+ +\] \d s of about 4 s: building", shown.decode())
    assert shown.decode().rpartition("\r\x1b[K")[2].startswith("set-up: building: ")
