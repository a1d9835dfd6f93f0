"""The markers of tests (tests/marks.py), with tests in a temporary folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run import ROOT

CONFTEST = """
import pytest
from tests.marks import pytest_itemcollected, pytest_runtest_protocol

@pytest.fixture(scope="session")
def programs_start():
    pass

@pytest.fixture
def embedded_service(programs_start):
    pass

@pytest.fixture
def client(embedded_service):
    pass
"""
STARTS = "import subprocess\n\ndef test_one({fixtures}):\n    subprocess.run(['true'])\n"


def run(folder: Path, text: str, *options: str) -> str:
    """Run a test file with this text and return the output."""
    names = ["postgres", "redis", "keycloak", "slurm", "ray", "chromium", "service", "programs", "server", "slow"]
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n" + "".join(f"    {name}\n" for name in names))
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-q", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("fixtures", "end"), [("", "1 failed"), ("programs_start", "1 passed"), ("client", "1 passed")]
)
def test_only_a_test_that_requests_it_starts_programs(
    tmp_path: Path, fixtures: str, end: str, programs_start: None
) -> None:
    output = run(tmp_path, STARTS.format(fixtures=fixtures))
    assert re.search(rf"^{end}", output, re.MULTILINE)
    assert ("requests the fixture `programs_start`" in output) == (end == "1 failed")


def test_a_test_is_marked_by_the_fixtures_of_its_fixtures(tmp_path: Path, programs_start: None) -> None:
    text = "def test_plain():\n    pass\n\ndef test_served(client):\n    pass\n"
    assert "test_served" not in run(tmp_path, text, "-m", "not server", "--collect-only")
    for name in ("server", "service", "programs"):
        output = run(tmp_path, text, "-m", name, "--collect-only")
        assert "test_served" in output
        assert "test_plain" not in output


def test_a_slow_test_needs_a_reason(tmp_path: Path, programs_start: None) -> None:
    text = "import pytest\n\n@pytest.mark.slow{reason}\ndef test_it():\n    pass\n"
    assert "1 passed" in run(tmp_path, text.format(reason="('it waits for a minute')"))
    assert "say why it is slow" in run(tmp_path, text.format(reason=""))
