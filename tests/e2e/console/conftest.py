"""One service with studies and an agent at work, shared by the files of this folder that one process runs.

The files run in alphabetical order. A study that a test creates has a name of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.console.pages import signed_in
from tests.factories.browser import build_console
from tests.factories.console import Rest, furnished
from tests.factories.service import EmbeddedService


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    build_console()
    with EmbeddedService(tmp_path_factory.mktemp("pages")) as service:
        yield service


@pytest.fixture(scope="package")
def api(service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with furnished(service, tmp_path_factory.mktemp("agent")) as rest:
        yield rest


@pytest.fixture
def page(browser: Browser, service: EmbeddedService, api: Rest) -> Iterator[Page]:
    page = signed_in(browser, service, service.token)
    yield page
    page.context.close()
