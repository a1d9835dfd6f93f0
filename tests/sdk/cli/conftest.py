"""A shell with a login at the shared service."""

from pathlib import Path

import pytest

from tests.factories.service import EmbeddedService
from tests.sdk.cli.shell import STUDY, Shell


@pytest.fixture
def shell(embedded_service: EmbeddedService, tmp_path: Path) -> Shell:
    return Shell(tmp_path, TRIMTAB_URL=embedded_service.grpc_address, TRIMTAB_TOKEN=embedded_service.token)


@pytest.fixture
def study_file(tmp_path: Path, name: str) -> str:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(name=name))
    return str(path)


@pytest.fixture
def component(name: str) -> str:
    return "component-" + name
