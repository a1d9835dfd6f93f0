"""Rules of the layout that import-linter cannot check."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp
import pytest

from tests.schedule import LONGEST_FIRST, TOGETHER

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("service", "trimtab", "trimtab_agent", "trimtab_components")
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
def test_import_is_light(module: str, forbidden: str, programs_start: None) -> None:
    needs_django = module.startswith(("service.rpc", "service.config", "service.workers"))
    setup = "import django; django.setup(); " if needs_django else ""
    script = f"import sys; {setup}import {module}; print(sorted(set({forbidden.split()!r}) & set(sys.modules)))"
    # `make coverage` would import modules of its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.stdout == "[]\n", done.stderr


def test_the_command_line_of_django_starts(programs_start: None) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "service.manage", "spectacular", "--help"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_room_of_the_repository_has_a_readme() -> None:
    assert not [name for name in ROOMS if not (ROOT / name / "README.md").exists()]


def test_the_folders_and_files_that_the_test_configuration_names_exist() -> None:
    assert not [path for path in (*TOGETHER, *LONGEST_FIRST) if not (ROOT / path).exists()]


@cache
def imports() -> grimp.ImportGraph:
    """Return all imports of files, also those within functions and for the type checker."""
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def test_no_two_files_import_each_other_also_not_through_others() -> None:
    graph = imports()
    assert {name.split(".")[0] for name in graph.modules} == set(PACKAGES)
    circles = [
        " -> ".join([importer, *chain])
        for importer in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
        if (chain := graph.find_shortest_chain(imported, importer))
    ]
    assert not circles, "\n".join(circles)


def test_record_linkage_imports_core_alone() -> None:
    graph, place = imports(), "service.matching.linkage"
    found = {one for name in graph.find_descendants(place) for one in graph.find_modules_directly_imported_by(name)}
    assert found
    assert [one for one in sorted(found) if not one.startswith((f"{place}.", "service.core."))] == []
