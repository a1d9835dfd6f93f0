"""Rules of the layout that import-linter cannot check."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FOLDERS, LONGEST_FIRST, TOGETHER

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "demo", "deploy", "migrations", "proto", "sdk", "service", "tests", "web")


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("trimtab", "torch django numpy pandas grpc service"),
        ("trimtab_agent.main", "torch django numpy pandas service trimtab"),
        ("trimtab_agent.agent", "torch django numpy pandas service trimtab"),
        ("trimtab_components.definition", "torch django grpc service trimtab trimtab_agent subprocess socket asyncio"),
        ("service.core.space", "torch django grpc"),
        ("service.algorithms.registry", "torch django grpc scipy"),
        ("service.rpc.server", "torch"),
        ("service.config.urls", "torch"),
        ("service.workers.tasks", "torch"),
        ("service.main", "torch django grpc numpy"),
        ("service.embedded.supervisor", "torch django grpc numpy celery"),
    ],
)
def test_import_is_light(module: str, forbidden: str) -> None:
    needs_django = module.startswith(("service.rpc", "service.config", "service.workers"))
    setup = "import django; django.setup(); " if needs_django else ""
    script = f"import sys; {setup}import {module}; print(sorted(set({forbidden.split()!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr


def test_every_room_of_the_repository_has_a_readme() -> None:
    assert not [name for name in ROOMS if not (ROOT / name / "README.md").exists()]


def test_the_folders_and_files_that_the_test_configuration_names_exist() -> None:
    assert not [path for path in (*FOLDERS, *TOGETHER, *LONGEST_FIRST) if not (ROOT / path).exists()]
