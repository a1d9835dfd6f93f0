"""Fixtures of the web proxy's tests."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.agent.workloads.shared import copy_of, make_once, module_of, run
from tests.agent.workloads.web_proxy.proxies import PAGES, WORKLOAD, compile_proxy

SMALL = ["--pages", PAGES, "--least-kb", 60, "--most-kb", 90]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """A folder with the proxy, its load generator and small pages."""

    def build(folder: Path) -> None:
        compile_proxy(folder)
        assert run([sys.executable, WORKLOAD / "pages.py", folder / "pages", *SMALL]).returncode == 0

    return make_once(tmp_path_factory, "web-proxy", build)


@pytest.fixture(scope="session")
def trial() -> ModuleType:
    """The workload's trial.py."""
    return module_of(WORKLOAD, "trial")


@pytest.fixture
def proxy(built: Path, trial: ModuleType) -> Iterator[object]:
    """A running proxy with an empty cache, which holds all pages."""
    with trial.running(built, ["--cache-bytes", "10000000", "--device", "ssd"]) as one:
        yield one


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload with small pages and short runs."""
    workload = copy_of(WORKLOAD, tmp_path_factory)
    component = yaml.safe_load((workload / "component.yaml").read_text())
    component["build"]["commands"][-1] += list(map(str, SMALL))
    command = component["applications"]["pages"]["command"]
    command[command.index("--warm-up=1")] = "--warm-up=0.1"
    command[command.index("--seconds=3")] = "--seconds=0.3"
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    return workload
