"""The documented way for services that drop their privileges: a folder of the work folder that everybody may write."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories.patience import PATIENCE

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can drop privileges")

COMPONENT = """
name: dropper
parameters:
  size: {type: int, min: 1, max: 9, default: 3, env: SIZE}
{header}
applications:
  small: {command: [PYTHON, "{component}/service.py"], timeout: 60}
metrics:
  bytes: {type: regex, pattern: 'bytes: (\\d+)', from: stderr}
  doubled: {type: python, function: "parse.py:doubled"}
"""
SERVICE = """
import os, pathlib, sys

os.setgroups([])
os.setgid(GID)
os.setuid(UID)
file = pathlib.Path("data/table")
file.write_bytes(b"x" * int(os.environ["SIZE"]))
print("bytes:", file.stat().st_size, "by", file.stat().st_uid, file=sys.stderr)
"""
METRIC = """
def doubled(run):
    assert run.seconds > 0 and run.stdout == "" and "by UID" in run.stderr
    assert (run.work / "data" / "table").stat().st_size == run.params["size"]
    return 2 * run.params["size"]
"""


def attempt(tmp_path: Path, header: str) -> "subprocess.CompletedProcess[str]":
    folder = tmp_path / "dropper"
    folder.mkdir()
    nobody = pwd.getpwnam("nobody")
    (folder / "component.yaml").write_text(COMPONENT.replace("{header}", header).replace("PYTHON", sys.executable))
    service = SERVICE.replace("GID", str(nobody.pw_gid)).replace("UID", str(nobody.pw_uid))
    (folder / "service.py").write_text(service)
    (folder / "parse.py").write_text(METRIC.replace("UID", str(nobody.pw_uid)))
    program, file = Path(sys.executable).with_name("trimtab-agent"), folder / "component.yaml"
    command = [str(program), "try", str(file), "--state-dir", str(tmp_path / "state"), "--set", "size=4"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def test_a_service_that_drops_its_privileges_writes_into_a_shared_folder(tmp_path: Path, programs_start: None) -> None:
    run = attempt(tmp_path, 'header: [[install, -d, -m, "1777", data]]')
    assert run.returncode == 0, run.stdout + run.stderr
    assert "metric bytes = 4\n" in run.stdout
    assert "metric doubled = 8\n" in run.stdout


def test_without_that_folder_the_service_is_refused(tmp_path: Path, programs_start: None) -> None:
    run = attempt(tmp_path, "header: [[mkdir, data]]")
    assert run.returncode == 1
    assert "PermissionError" in run.stdout + run.stderr
