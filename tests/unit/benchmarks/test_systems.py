"""The comparison of tools on real systems: what other optimisers are told, and what the tables say."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.systems import compare
from tests.benchmarks.systems.again import EARLIER, Earlier, again_table
from tests.benchmarks.systems.report import Result, report, results
from tests.benchmarks.systems.systems import SYSTEMS, System
from tests.benchmarks.systems.tools import expert, mlos_files
from tests.benchmarks.systems.trial import decoded

REDIS = SYSTEMS["redis-cache"]


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=list(SYSTEMS))
def test_other_optimisers_and_guides_have_values_of_the_component(system: System) -> None:
    space = system.problem.space
    content = json.loads(mlos_files(system, 0, ["run"], Path("state"), Path("log"))["tunables.jsonc"])
    defaults = {name: one["default"] for name, one in content[system.name]["params"].items()}
    assert decoded(system.problem, defaults) == space.default()
    guide = expert(system).params
    assert space.feasible(space.validate(guide))
    assert (space.key(guide) != space.key(space.default())) == bool(system.expert)


def records(misses: float, claimed: float, *, rounds: int = 6) -> list[dict[str, Any]]:
    """Return the records of one tool that has halved 100 misses by its own claim, and of the measurement."""
    space = REDIS.problem.space
    place = {"system": REDIS.name, "seed": 0, "application": "cache"}
    params = {"maxmemory-policy": "allkeys-random", "maxmemory-samples": 5}
    found = {"params": params, "gain": claimed, "low": None, "high": None}
    found |= {"failed": 0, "broken": 0, "trials": 40, "lines": 9}
    sides = {space.key(space.default()): 100.0, space.key(space.validate(params)): misses}
    runs = [
        {**place, "round": number, "key": key, "run": {"metrics": {"misses": value + number}}}
        for number in range(rounds)
        for key, value in sides.items()
    ]
    return [{**place, "tool": tool, "found": found} for tool in ("auto", "random")] + runs


def only(found: list[dict[str, Any]]) -> Result:
    return results(found)[0]


def test_a_claim_holds_where_the_rounds_find_it() -> None:
    assert only(records(50, 0.5)).holds
    assert only(records(50, 0.495)).holds
    assert not only(records(90, 0.5)).holds
    assert only(records(90, 0.5)).true == pytest.approx(0.0976, abs=1e-3)


def test_the_tables_have_the_gain_and_the_standing() -> None:
    text = report(records(50, 0.5))
    assert "| redis-cache: misses | 40, 1 | 102.5 | 48.8 % (47.6 to 50.0) | 48.8 % (47.6 to 50.0) |" in text
    assert "| level |" in text
    assert "| `auto` | 1 of 1 | 1.2 (1.2 to 1.2) | 0 of 40 | 0 | 9 to 9 |" in text


def test_what_breaks_a_limit_has_no_gain() -> None:
    system = SYSTEMS["redis"]
    space, place = system.problem.space, {"system": "redis", "seed": 0, "application": "structures"}
    params = {**space.default(), "hash-max-listpack-entries": 4096}
    found = {"params": params, "gain": 0.5, "low": None, "high": None, "trials": 40}
    runs = [
        {**place, "round": number, "key": space.key(one), "run": {"metrics": {"data_mib": value, "cpu_us": cpu}}}
        for number in range(6)
        for one, value, cpu in ((space.default(), 20.0, 2.0), (params, 10.0, 5.0))
    ]
    [one] = results([{**place, "tool": "mlos", "found": found}, *runs])
    assert (one.broken, one.is_usable, one.true, one.holds) == (6, False, 0.0, False)


@pytest.mark.parametrize("earlier", EARLIER.values(), ids=list(EARLIER))
def test_earlier_recommendations_have_another_load(earlier: Earlier) -> None:
    space = earlier.system.problem.space
    assert space.feasible(space.validate(earlier.params))
    assert space.key(earlier.params) != space.key(space.default())
    assert earlier.other in earlier.system.loaded.applications
    assert earlier.other != earlier.system.study["application"]


def test_what_is_left_of_a_gain_is_told_and_not_mixed_with_the_comparison() -> None:
    earlier = EARLIER["sqlite-durable"]
    space = earlier.system.problem.space
    runs = [
        {
            "system": earlier.name,
            "seed": 0,
            "again": True,
            "began": 0.0,
            "application": earlier.other,
            "round": number,
            "key": space.key(one),
            "run": {"metrics": {"written_mib": value}},
        }
        for number in range(6)
        for one, value in ((space.default(), 20.0), (earlier.params, 17.92))
    ]
    row = "| 20.8 % | 01 January 1970 | write-more | 20 MiB | 10.4 % (10.4 to 10.4) | 0.50 | 6 of 6 |"
    assert row in again_table(runs)
    assert results([{**runs[0], "tool": "auto", "found": {"params": earlier.params, "gain": 0.2}}, *runs]) == []


def test_packing_replaces_the_same_studies_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "DATA", tmp_path / "packed.jsonl.gz")
    for number, name in enumerate(("redis", "memcached")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"{name}-0-auto.json").write_text(json.dumps({"trials": number}))
        compare.pack(folder)
    (tmp_path / "0" / "redis-0-auto.json").write_text(json.dumps({"trials": 7}))
    (tmp_path / "0" / "redis-0-again.jsonl").write_text(json.dumps({"round": 0}) + "\n")
    compare.pack(tmp_path / "0")
    kept = [(one["system"], one.get("found"), one.get("again", False)) for one in compare.packed()]
    assert sorted(kept, key=str) == [
        ("memcached", {"trials": 1}, False),
        ("redis", None, True),
        ("redis", {"trials": 7}, False),
    ]
