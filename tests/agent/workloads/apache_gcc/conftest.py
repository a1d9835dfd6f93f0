"""Fixtures of the tests of Apache httpd: its sources and its build are made once in a test run."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.agent.workloads.apache_gcc.httpd import QUICK, WORKLOAD, copy
from tests.agent.workloads.shared import make_once, run, try_trial
from tests.factories.service import lack, require_program


@pytest.fixture(scope="session")
def workload(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """The workload with its sources, which are prepared here if this checkout has none."""
    for program, package in (
        ("gcc", "gcc"),
        ("make", "make"),
        ("ab", "apache2-utils"),
        ("valgrind", "valgrind"),
        ("pcre2-config", "libpcre2-dev"),
    ):
        require_program(program, package)

    def prepare(folder: Path) -> None:
        made = copy(folder)
        if (WORKLOAD / "source").is_dir():
            (made / "source").symlink_to(WORKLOAD / "source")
            return
        prepared = run([sys.executable, made / "prepare.py"])
        if prepared.returncode != 0:
            lack(f"no sources of Apache httpd: {prepared.stderr}")

    return make_once(tmp_path_factory, "apache-sources", prepare) / "apache-gcc"


@pytest.fixture(scope="session")
def builds(workload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent's cache of builds, which has httpd."""

    def build(folder: Path) -> None:
        printed = try_trial(workload, folder, "static-2k", "--metric", "binary_bytes", "--set", QUICK)
        assert "outcome: completed" in printed, printed

    return make_once(tmp_path_factory, "apache-httpd", build) / "builds"


@pytest.fixture(scope="session")
def state(builds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent's state. Its httpd has a path of its own, so that tests see no processes of another test process."""
    folder = tmp_path_factory.mktemp("state")
    shutil.copytree(builds, folder / "builds", symlinks=True)
    return folder


@pytest.fixture(scope="session")
def built(state: Path) -> Path:
    """The folder with httpd in the cache of builds."""
    [entry] = (state / "builds").glob("*/httpd")
    return entry.parent
