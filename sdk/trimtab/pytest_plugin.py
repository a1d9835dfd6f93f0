"""A plugin of pytest that tunes a function which a test measures: `pytest --trimtab`.

    @pytest.mark.trimtab(space=[trimtab.Int("block", 4, 256, log=True, default=64)], max_trials=20)
    def test_sort(trimtab_params, trimtab_measure):
        trimtab_measure(lambda: sort(data, **trimtab_params))

Without `--trimtab`, the test runs once with the defaults. With it, the test runs once for each trial of a study, whose
objective is the shortest time of a call in seconds (smaller is better). The report at the end names the verdict.
"""

import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trimtab.space import Params
    from trimtab.study import Study

METRIC = "seconds"
_STUDIES: "pytest.StashKey[dict[str, Study]]" = pytest.StashKey()
_TRIAL: pytest.StashKey[Any] = pytest.StashKey()
_FOUND: pytest.StashKey[dict[str, float]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("trimtab")
    group.addoption("--trimtab", action="store_true", help="tune the tests with the marker trimtab")
    group.addoption("--trimtab-prefix", default="pytest-", help="text before the names of the studies")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "trimtab(space, max_trials, **study): tune what the test measures")
    config.stash[_STUDIES] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test a case for each trial."""
    marker = metafunc.definition.get_closest_marker("trimtab")
    if marker is not None and metafunc.config.getoption("--trimtab"):
        count = marker.kwargs.get("max_trials", 20)
        metafunc.parametrize("_trimtab_place", range(count), ids=[f"trial{place + 1}" for place in range(count)])


@pytest.fixture
def _trimtab_place() -> None:
    """The place among the trials; None without `--trimtab`."""


@pytest.fixture
def trimtab_params(request: pytest.FixtureRequest, _trimtab_place: int | None) -> "Iterator[Params]":
    """The configuration to measure: the defaults, or with `--trimtab` the next suggestion."""
    marker = request.node.get_closest_marker("trimtab")
    if marker is None:
        pytest.fail("the fixture trimtab_params needs the marker pytest.mark.trimtab(space=[...])")
    if _trimtab_place is None:
        space = marker.kwargs["space"]
        if missing := [one.name for one in space if one.default is None]:
            pytest.fail(f"without --trimtab the test runs with the defaults, and these have none: {missing}")
        yield {one.name: one.default for one in space}
        return
    study = _study(request, marker)
    trials = study.ask()
    if not trials:
        pytest.skip("the study has measured its whole space")
    request.node.stash[_FOUND] = {}
    yield trials[0].params
    found = request.node.stash[_FOUND]
    if found:
        study.tell(trials[0], found)
    else:
        study.tell(trials[0], failed="the test failed, or has measured nothing")


@pytest.fixture
def trimtab_measure(request: pytest.FixtureRequest) -> Callable[[Callable[[], object]], float]:
    """A function that calls another one three times, keeps the shortest time in seconds, and returns it."""

    def measure(call: Callable[[], object], rounds: int = 3) -> float:
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        if _FOUND in request.node.stash:
            request.node.stash[_FOUND][METRIC] = min(times)
        return min(times)

    return measure


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the result of each study."""
    studies = config.stash[_STUDIES]
    if studies:
        terminalreporter.section("trimtab")
    for test, study in studies.items():
        recommendation = study.recommendation
        params = "" if recommendation is None else f": {dict(recommendation.params)}"
        terminalreporter.line(f"{test}: study {study.name}, {study.verdict or 'no result'}{params}")


def _study(request: pytest.FixtureRequest, marker: pytest.Mark) -> "Study":
    """Return the study of a test, which continues in later runs."""
    from trimtab.client import Client
    from trimtab.objective import Minimize

    test = request.node.nodeid.partition("[")[0]
    studies = request.config.stash[_STUDIES]
    if test not in studies:
        name = request.config.getoption("--trimtab-prefix") + re.sub(r"[^A-Za-z0-9._-]+", "-", test)
        given = {key: value for key, value in marker.kwargs.items() if key != "max_trials"}
        studies[test] = Client().create_study(
            name[-63:].lstrip("._-"), objectives=[Minimize(METRIC, unit="s")], load_if_exists=True, **given
        )
    return studies[test]
