"""Hooks of pytest that mark each test by what it needs, so that `-m` can select tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

# The marker of a test, by the fixtures that it requests directly or through other fixtures. A test with any of them has
# the marker `server` too, and `make check` leaves it out.
MARKERS = {
    "postgres": {"postgres_url", "db", "transactional_db"},
    "redis": {"redis_url"},
    "keycloak": {"keycloak"},
    "slurm": {"slurm_session"},
    "ray": {"ray_session"},
    "chromium": {"browser"},
    "service": {"embedded_service", "own_service"},
    "programs": {"programs_start"},
}
_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}


def slow_cases(reason: str, *values: object) -> list[Any]:
    """Return values for `parametrize` whose cases only `make test-all` runs. A tuple has a value for each name."""
    mark = pytest.mark.slow(reason)
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=mark) for value in values]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give a test the markers of what it needs. Fail if it is left to `make test-all` without a reason."""
    for name in _markers(item):
        item.add_marker(name)
    for mark in item.iter_markers("slow"):
        if not mark.args:
            raise pytest.UsageError(f'{item.nodeid}: say why it is slow: @pytest.mark.slow("why")')


def _markers(item: pytest.Item) -> set[str]:
    """Return the names of the markers for what a test needs."""
    fixtures = set(getattr(item, "fixturenames", ()))
    found = {name for name, wanted in MARKERS.items() if fixtures & wanted}
    if item.get_closest_marker("django_db"):
        found.add("postgres")
    call = getattr(item, "callspec", None)
    if call is not None and "make_runner" in call.params:
        found |= {call.params["make_runner"].removeprefix("psij-")} - {"local"}
    return {*found, "server"} if found else set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test without the marker `server` start no program."""
    global _guarded
    _guarded = item.get_closest_marker("server") is None
    try:
        return (yield)
    finally:
        _guarded = False


def _on_event(event: str, arguments: tuple[object, ...]) -> None:
    if _guarded and event in _STARTS:
        raise AssertionError(f"{event} {arguments}: a test that starts programs requests the fixture `programs_start`")


_guarded = False
sys.addaudithook(_on_event)
