"""Fixtures of the burst buffer's tests."""

from pathlib import Path

import pytest
import yaml

from tests.agent.workloads.burst_buffer.place import DAEMON, HELPERS, LIBRARY, SOURCES, WORKLOAD, Place
from tests.agent.workloads.shared import SHARED_LIBRARY, compile_c, copy_of, make_once


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """A folder with the programs and the library."""

    def build(folder: Path) -> None:
        compile_c(folder / "burst", *DAEMON)
        compile_c(folder / "libburst.so", *SHARED_LIBRARY, *LIBRARY, "-ldl")
        compile_c(folder / "checkpoint", SOURCES / "checkpoint.c")
        compile_c(folder / "exercise", HELPERS / "exercise.c")

    return make_once(tmp_path_factory, "burst-buffer", build)


@pytest.fixture
def place(built: Path, tmp_path: Path) -> Place:
    """A new directory with a buffer."""
    return Place(built, tmp_path)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload with little data and a grid of two points, so that its trials are short."""
    workload = copy_of(WORKLOAD, tmp_path_factory)
    component = yaml.safe_load((workload / "component.yaml").read_text())
    less = {"--size=50M": "--size=1M", "--bs=10M": "--bs=256k", "--io_size=1280k": "--io_size=16k"}
    for application in component["applications"].values():
        command = [less.get(item, item) for item in application["command"]]
        for option, value in (("-s", "2"), ("-r", "2"), ("-c", "1")):
            if option in command:
                command[command.index(option) + 1] = value
        application["command"] = command
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    study = yaml.safe_load((workload / "studies" / "checkpoint.yml").read_text())
    for name, one in study["parameters"].items():
        one["values"] = [2, 10] if name == "flash-destagers" else [one["default"]]
    (workload / "studies" / "checkpoint.yml").write_text(yaml.safe_dump(study))
    return workload
