"""Fixtures that end-to-end tests of the console share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.factories.browser import started_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium for one file. Playwright keeps an event loop in the thread, in which no other loop can run."""
    with started_browser() as browser:
        yield browser
