"""Tools that the tests of several workloads use."""

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from tests.agent.conftest import AgentProcess
from tests.factories.service import EmbeddedService

WORKLOADS = Path(__file__).parents[3] / "agents" / "workloads"
SHARED_LIBRARY = ["-fPIC", "-shared", "-fvisibility=hidden"]
MIB = 1 << 20


def run(command: Sequence[object], cwd: Path | None = None, /, **variables: object) -> subprocess.CompletedProcess[str]:
    """Run a command with more environment variables; return its output as text.

    It has no bound of its own but the test's, since a command that builds a workload takes many minutes on a busy
    machine.
    """
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def compile_c(target: Path, *arguments: str | Path) -> Path:
    """Compile C sources without any warning; return the target."""
    strict = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run([*strict, "-o", target, *arguments], check=True)
    return target


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` fills once in a test run, for all processes of the run."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, done = base / f"made-{name}", base / f"made-{name}.done"
    with (base / f"made-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def copy_of(workload: Path, factory: pytest.TempPathFactory) -> Path:
    """Return a copy of a workload, next to copies of the modules that the workloads share."""
    copied = factory.mktemp("small") / workload.name
    shutil.copytree(workload, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for module in workload.parent.glob("*.py"):
        shutil.copy(module, copied.parent)
    return copied


def module_of(workload: Path, name: str) -> ModuleType:
    """Import a Python file of a workload, which may import the other files of its folder.

    The other files are imported for it alone: those of another workload may have the same names.
    """
    spec = importlib.util.spec_from_file_location(f"{workload.name.replace('-', '_')}_{name}", workload / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # where dataclasses look for it
    folders = [str(workload), str(workload.parent)]
    path, known = sys.path[:], set(sys.modules)
    sys.path[:0] = folders
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path[:] = path
        for other in set(sys.modules) - known - {spec.name}:
            file = getattr(sys.modules[other], "__file__", None)
            if file and Path(file).parent == workload:
                del sys.modules[other]
    return made


# --- trials


def try_trial(workload: Path, state: Path, application: str, *options: str) -> str:
    """Run one trial of a workload by `trimtab-agent try`; return its output."""
    command = [sys.executable, "-m", "trimtab_agent.main", "try", component_of(workload), "--components", workload]
    return run([*command, "--state-dir", state, "--application", application, *options]).stdout


def component_of(workload: Path) -> str:
    """Return the name of a workload's component."""
    [name] = re.findall(r"^name: (\S+)$", (workload / "component.yaml").read_text(), re.MULTILINE)
    return str(name)


def metrics_in(printed: str) -> dict[str, float]:
    """Return the metrics in the output of a trial."""
    return {name: float(value) for name, value in re.findall(r"^metric (\w+) = (\S+)$", printed, re.MULTILINE)}


@contextmanager
def offering(
    workload: Path, service: EmbeddedService, folder: Path, *options: str, builds: Path | None = None
) -> Iterator[dict[str, str]]:
    """Run an agent with a workload; yield the variables by which programs find its service.

    `builds` is a cache of builds for it to use.
    """
    agent = AgentProcess(folder, int(service.grpc_address.rpartition(":")[2]), service.token)
    agent.components = workload
    if builds:
        agent.state.mkdir()
        shutil.copytree(builds, agent.state / "builds", symlinks=True)
    agent.start(*options)
    try:
        agent.wait_until_ready()
        yield {"TRIMTAB_URL": service.grpc_address, "TRIMTAB_TOKEN": service.token}
    finally:
        agent.clear_away()


# --- measure.py and tune.py


def run_script(workload: Path, name: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run measure.py or tune.py of a workload."""
    return run([sys.executable, workload / f"{name}.py", *arguments], **variables)


def row_of(table: Path) -> dict[str, str]:
    """Return the cells of the only row of a Markdown table by their columns' names."""
    header, _, row = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.read_text().splitlines())
    return dict(zip(header, row, strict=True))


def check_refusal(answer: subprocess.CompletedProcess[str], message: str) -> None:
    """Assert that a script has refused its arguments with this message, and has printed nothing else."""
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: {message}")
    assert answer.stdout == ""
