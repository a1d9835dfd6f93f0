"""Fixtures of the small read optimizer's tests."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.agent.workloads.shared import SHARED_LIBRARY, compile_c, copy_of, make_once, run
from tests.agent.workloads.small_read_optimizer.preload import HELPERS, LIBRARY, SOURCES, WORKLOAD
from tests.factories.service import lack


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """A folder with libsro.so, fakeapp, slowfs and the helpers, and a file of 4 MiB that fakeapp has made."""

    def build(folder: Path) -> None:
        compile_c(folder / "libsro.so", *SHARED_LIBRARY, *LIBRARY, "-ldl")
        compile_c(folder / "fakeapp", SOURCES / "fakeapp.c")
        compile_c(folder / "slowfs", SOURCES / "slowfs.c")
        compile_c(folder / "trace.so", "-fPIC", "-shared", HELPERS / "trace.c")
        compile_c(folder / "hostile", "-fno-builtin", HELPERS / "hostile.c")
        subprocess.run([folder / "fakeapp", "--create", "4M", folder / "data"], check=True)

    return make_once(tmp_path_factory, "small-read-optimizer", build)


@pytest.fixture(scope="session")
def mounts(built: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where no file system in user space can be mounted."""
    answer = run([built / "slowfs", built, tmp_path_factory.mktemp("mount"), "true"])
    if answer.returncode:
        lack(f"slowfs cannot mount here: {answer.stderr}")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload with a file of 8 MiB, few operations and a grid of four points, so that its trials are short."""
    workload = copy_of(WORKLOAD, tmp_path_factory)
    component = yaml.safe_load((workload / "component.yaml").read_text())
    component["build"]["commands"][-1][2] = "8M"
    for name, application in component["applications"].items():
        command = application["command"]
        if "-N" in command:
            command[command.index("-N") + 1] = "60"
        if name == "sro-3":
            command[command.index("-G") + 1] = "2:3"
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    study = yaml.safe_load((workload / "study.yml").read_text())
    small = {"SRO_SEQUENCE_LENGTH": [4, 100], "SRO_DSC_BINSIZE": [10485756], "SRO_CLUSTER_THRESHOLD": [2, 6]}
    for name, values in {**small, "SRO_PREFETCH_SIZE": [65536, 209715120]}.items():
        study["parameters"][name].update(values=values, default=values[-1])
    (workload / "study.yml").write_text(yaml.safe_dump(study))
    return workload
