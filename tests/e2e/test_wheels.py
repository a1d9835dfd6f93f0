"""The wheels in empty environments: without a checkout, with an empty home and in an empty folder."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import trimtab
from tests.factories.agent import RealAgent, write_component
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService

ROOT = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or str(ROOT / ".cache/uv/bin/uv")
STUDY = """
name: from-a-wheel
component: bowl
application: only
objectives: [{minimize: value}]
algorithm: gp
budget: {max_trials: 14}
final_check: false
"""

pytestmark = pytest.mark.slow("builds all wheels and installs them into empty environments")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run([ROOT / "deploy/checkout/setup.sh", "--group", "release"], check=True)
    subprocess.run([ROOT / "deploy/release/wheels.sh", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, since PostgreSQL of a test that runs as root runs as `nobody`."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def installed(wheels: Path, open_folder: Path) -> dict[str, Path]:
    """The folder of the programs of each distribution with programs, each in an environment of its own."""
    folders = {}
    for wheel in sorted(wheels.glob("*.whl")):
        name = wheel.name.partition("-")[0].replace("_", "-")
        if name == "trimtab-components":  # the agent and the service depend on it
            continue
        environment = open_folder / name
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, environment], check=True)
        command: list[str | Path] = [UV, "pip", "install", "--quiet", "--python", environment / "bin" / "python"]
        subprocess.run([*command, "--find-links", wheels, wheel], check=True)
        folders[name] = environment / "bin"
    assert sorted(folders) == ["trimtab", "trimtab-agent", "trimtab-service"]
    return folders


class InstalledService(EmbeddedService):
    """`trimtab-service up` of a wheel, without any variable of this environment."""

    def __init__(self, programs: Path, home: Path) -> None:
        super().__init__(home / ".local/share/trimtab")
        self.environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        self._programs = programs

    def command(self) -> list[str]:
        """Return the command line with the installed program, which selects the data folder itself."""
        ports = ["--port", self._ports[0], "--grpc-port", self._ports[1]]
        return [str(self._programs / "trimtab-service"), "up", *ports]


def test_all_have_the_same_version(installed: dict[str, Path]) -> None:
    for name, programs in installed.items():
        printed = subprocess.run([programs / name, "--version"], capture_output=True, text=True, check=True).stdout
        assert printed == f"{name} {trimtab.__version__}\n"


@pytest.mark.parametrize("name", ["trimtab_agent", "trimtab_service"])
def test_agent_and_service_need_the_component_reader_of_their_version(name: str, wheels: Path) -> None:
    (wheel,) = wheels.glob(f"{name}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"{name}-{trimtab.__version__}.dist-info/METADATA").decode()
    assert f"Requires-Dist: trimtab-components=={trimtab.__version__}\n" in metadata


def test_a_study_runs_with_nothing_but_wheels(
    installed: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    # a folder with the name of the package must not be taken for it
    (here / "service").mkdir(parents=True)
    (here / "service" / "__init__.py").write_text("raise RuntimeError('the wrong package')")
    (here / "study.yaml").write_text(STUDY)
    home.mkdir()
    monkeypatch.chdir(here)
    components = write_component(tmp_path / "components", tmp_path / "runs")
    with InstalledService(installed["trimtab-service"], home) as service:
        with urllib.request.urlopen(service.http_url, timeout=PATIENCE) as page:
            script = re.search(r'src="(/assets/[^"]+\.js)"', page.read().decode())
        assert script
        with urllib.request.urlopen(service.http_url + script[1], timeout=PATIENCE) as answer:
            assert answer.headers.get_content_type() == "text/javascript"
        with urllib.request.urlopen(f"{service.http_url}/docs/how-to/install.html", timeout=PATIENCE) as page:
            assert "Install from wheels" in page.read().decode()
        token = service.data_dir / "admin-token"
        agent = RealAgent(tmp_path, service.grpc_address, token, components, programs=installed["trimtab-agent"])
        environment = {
            **service.environment,
            "TRIMTAB_URL": service.grpc_address,
            "TRIMTAB_TOKEN": service.token,
        }
        with agent:
            command: list[str | Path] = [installed["trimtab"] / "trimtab", "tune", "study.yaml"]
            tuned = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert tuned.returncode == 0, tuned.stdout + tuned.stderr + service.logs()
    assert (tmp_path / "runs").read_text().count("\n") == 14
    assert sorted(path.name for path in here.iterdir()) == ["service", "study.yaml"]


def test_the_agent_brings_its_workloads_manual_page_and_unit(installed: dict[str, Path], tmp_path: Path) -> None:
    programs = installed["trimtab-agent"]
    listed = subprocess.run([programs / "trimtab-agent", "workloads"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert names == sorted(path.parent.name for path in (ROOT / "agents/workloads").glob("*/component.yaml"))
    command: list[str | Path] = [programs / "trimtab-agent", "workloads", "gcc-flags"]
    folder = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(folder).is_relative_to(programs.parent)
    check: list[str | Path] = [programs / "trimtab-agent", "check", folder, "--state-dir", tmp_path]
    assert "gcc-flags" in subprocess.run(check, capture_output=True, text=True, check=True).stdout
    assert (programs.parent / "lib/systemd/system/trimtab-agent.service").is_file()
    page = (programs.parent / "share/man/man1/trimtab-agent.1").read_text()
    assert page.startswith(".TH TRIMTAB\\-AGENT")
    for word in ("--match-socket", "--policy"):
        assert word.replace("-", r"\-") in page
    assert str(Path.home()) not in page


@pytest.mark.parametrize(
    ("package", "missing", "message"),
    [
        ("sdk", "sdk/trimtab/_gen", "Run `make setup` first"),
        ("agents", "agents/trimtab_agent/_gen", "Run `make setup` first"),
        (".", "service/_gen", "Run `make setup` first"),
        (".", "web/dist", "Install Node.js 20.19 or newer"),
    ],
)
def test_an_incomplete_wheel_is_not_built(
    package: str, missing: str, message: str, tmp_path: Path, programs_start: None
) -> None:
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns(".venv", ".cache", ".git", "node_modules", "tests", "__pycache__", "dist-*")
    shutil.copytree(ROOT, copy, ignore=ignored)
    shutil.rmtree(copy / missing)
    command: list[str | Path] = [UV, "build", "--wheel", "--out-dir", tmp_path / "out", copy / package]
    built = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "400"})
    assert built.returncode != 0
    assert message in built.stderr
    assert not list(tmp_path.glob("out/*.whl"))
