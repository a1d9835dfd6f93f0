"""The component redis, on real servers."""

from pathlib import Path

import pytest

from tests.agent.workloads.shared import WORKLOADS, metrics_in, module_of, run, try_trial
from tests.factories.service import require_program

WORKLOAD = WORKLOADS / "redis"


@pytest.fixture(autouse=True)
def _redis(programs_start: None) -> None:
    require_program("redis-server", "redis-server")


def test_the_encoding_of_sorted_sets_changes_their_memory(tmp_path: Path) -> None:
    found = [
        metrics_in(try_trial(WORKLOAD, tmp_path, "structures", "--set", f"zset-max-listpack-entries={limit}"))
        for limit in (128, 2048)
    ]
    assert found[1]["data_mib"] < 0.7 * found[0]["data_mib"]
    assert all(one["cpu_us"] > 0 for one in found)


def test_a_cache_answers_with_what_was_stored(tmp_path: Path) -> None:
    printed = try_trial(WORKLOAD, tmp_path, "cache", "--set", "maxmemory-policy=allkeys-lfu")
    found = metrics_in(printed)
    assert 0.4 < found["hit_ratio"] < 0.8, printed
    assert found["misses"] == pytest.approx(60_000 * (1 - found["hit_ratio"]))


def test_a_recommendation_can_be_measured_with_other_data(tmp_path: Path) -> None:
    cached = metrics_in(try_trial(WORKLOAD, tmp_path, "cache-large"))
    assert 0.4 < cached["hit_ratio"] < 0.8
    long = metrics_in(try_trial(WORKLOAD, tmp_path, "structures-long"))
    assert long["data_mib"] > 5


def test_a_refused_setting_and_a_wrong_answer_end_the_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = run(["python3", WORKLOAD / "trial.py", "cache", "maxmemory-policy=none"])
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "maxmemory-policy" in refused.stderr
    trial = module_of(WORKLOAD, "trial")
    monkeypatch.setattr("sys.argv", ["trial.py", "cache"])
    value, seen = trial._value, []  # the first value of each key that is stored is not the one that is expected

    def changing(key: str) -> str:
        seen.append(key)
        return value(key) if seen.count(key) > 1 else "another"

    monkeypatch.setattr(trial, "_value", changing)
    with pytest.raises(SystemExit) as ended:
        trial.bench.main(trial.measure)
    assert ended.value.code == 1
    assert "error: the value of key:" in capsys.readouterr().err
