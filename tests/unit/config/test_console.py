"""The paths at which the console's page answers, and those of missing files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import RequestFactory

from service.config.console import page


@pytest.fixture
def built(tmp_path: Path, settings: Any) -> None:
    (tmp_path / "index.html").write_text("the page")
    settings.CONSOLE_DIR = tmp_path


@pytest.mark.parametrize(
    "path",
    ["/", "/studies", "/studies/a.b", "/studies/owners.v1/trials/1", "/studies/a.b/report", "/components/x.yaml"],
)
def test_a_route_has_the_page_also_with_a_dot_in_a_name(built: None, path: str) -> None:
    answer = page(RequestFactory().get(path))
    assert (answer.status_code, answer.content) == (200, b"the page")


@pytest.mark.parametrize(
    "path", ["/assets/index-1.js", "/assets/", "/assets/a/b", "/robots.txt", "/.env", "/theme.js.map"]
)
def test_a_missing_file_is_missing(built: None, path: str) -> None:
    assert page(RequestFactory().get(path)).status_code == 404
