from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.algorithms import registry
from service.core.errors import InvalidInput
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from tests.factories.packages import ENTRY, write_package

PROBLEM = Problem.build(Space.build([FloatParameter("x", 0, 1)]), [Objective("a", "minimize")])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, which the registry reads when it is asked for the first time."""
    monkeypatch.syspath_prepend(tmp_path)
    registry._installed.cache_clear()
    yield tmp_path
    registry._installed.cache_clear()


def test_an_installed_algorithm_is_in_the_registry(folder: Path) -> None:
    write_package(folder, "one-search")
    assert registry.names()[-1] == "one-search"
    assert registry.describe("one-search").doc == "Independent draws of another package."
    assert registry.validate("one-search", {}, PROBLEM) == {"salt": 0}
    with pytest.raises(InvalidInput) as caught:
        registry.validate("one-search", {"salt": -1}, PROBLEM)
    assert caught.value.data["allowed"] == "an integer from 0"
    algorithm = registry.create("one-search", PROBLEM, seed=1, options={"salt": 4})
    same = registry.create("random", PROBLEM, seed=5, options={})
    assert algorithm.suggest(3, cursor=0) == same.suggest(3, cursor=0)


def test_an_installed_algorithm_cannot_replace_another(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    own = registry.names()
    registry._installed.cache_clear()
    write_package(folder, "gp")
    write_package(folder / "more", "two-search")
    assert registry.names() == own
    assert registry.describe("gp").implementation == "service.algorithms.gp.algorithm:GpAlgorithm"
    assert 'an algorithm is left out algorithm=gp package=gp-package reason="the name gp is taken"' in caplog.text


@pytest.mark.parametrize(
    ("name", "entry", "named", "reason"),
    [
        ("broken-search", "raise ImportError('no license')", None, "its import failed with ImportError (no license)"),
        ("number-search", "ENTRY = 3", None, "it is a int, not a service.algorithms.entry.Entry"),
        ("other-search", ENTRY, "gp", "its entry has another name, gp"),
    ],
)
def test_an_unusable_entry_point_is_left_out(
    folder: Path, caplog: pytest.LogCaptureFixture, name: str, entry: str, named: str | None, reason: str
) -> None:
    write_package(folder, name, entry=entry, named=named)
    assert name not in registry.names()
    assert f'an algorithm is left out algorithm={name} package={name}-package reason="{reason}"' in caplog.text
