"""Needs of components: `trimtab-agent workloads`, `prepare`, and `try` of the components that ship with the agent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.conftest import run_agent_command
from tests.factories.component_texts import faulty
from trimtab_agent import needs, shipped
from trimtab_components.schema import Component, Need


def test_a_component_says_what_it_needs(component: Callable[..., Component]) -> None:
    made = component(faulty(rest="needs: {programs: {nginx: nginx-light}, modules: {pyspark: pyspark}}"))
    assert made.needs == (Need("program", "nginx", "nginx-light"), Need("module", "pyspark", "pyspark"))


def test_what_is_missing_is_named_with_the_commands_that_install_it(tmp_path: Path) -> None:
    wanted = [
        Need("program", "sh", "dash"),
        Need("program", "no-such-program", "one"),
        Need("program", "no-such-other", "one"),
        Need("file", str(tmp_path / "none.h"), "two-dev"),
        Need("file", str(tmp_path), "there"),
    ]
    absent = needs.missing(wanted)
    assert absent == wanted[1:4]
    assert needs.commands([*absent, Need("module", "m", "three")]) == [
        "apt-get install one two-dev",
        "python3 -m pip install three",
    ]


def test_modules_are_looked_for_by_the_python_of_scripts(programs_start: None) -> None:
    wanted = [Need("module", "json", "none"), Need("module", "no_such_module", "none")]
    assert needs.missing(wanted) == wanted[1:]


@pytest.mark.parametrize("name", sorted(shipped.workloads()))
def test_each_component_that_ships_says_what_it_needs(name: str) -> None:
    """Each runs some program."""
    assert shipped.needs(shipped.workload(name)), name


def test_prepare_and_try_of_a_component_that_ships(tmp_path: Path, programs_start: None) -> None:
    listed = run_agent_command(["workloads"]).stdout
    assert "redis " in listed
    assert "needs: redis-server" in listed
    prepared = run_agent_command(["prepare", "redis"])
    assert prepared.stdout.startswith(("found    program redis-server", "missing  program redis-server"))
    unknown = run_agent_command(["prepare", "nothing"])
    assert unknown.returncode == 2
    assert "no workload 'nothing' ships with the agent" in unknown.stderr
    shared = run_agent_command(["workloads", "bench.py"]).stdout.strip()
    assert "def main(" in Path(shared).read_text()
    if prepared.returncode == 0:
        tried = run_agent_command(["try", "redis", "--dry-run", "--state-dir", str(tmp_path)])
        assert "trial.py', 'structures'" in tried.stdout, tried.stderr
