"""The component kafka-producer, on a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agent.workloads.shared import WORKLOADS, module_of
from tests.factories.service import lack, require_program

WORKLOAD = WORKLOADS / "kafka-producer"


def test_events_are_different_and_the_same_each_time() -> None:
    trial = module_of(WORKLOAD, "trial")
    events = trial.events()
    assert len(set(events)) == trial.KINDS
    assert events == trial.events()
    assert {type(json.loads(event)) for event in events} == {dict}


def test_a_machine_without_kafka_is_told_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = module_of(WORKLOAD, "trial")
    monkeypatch.setattr(trial, "LIB", tmp_path / "lib")
    with pytest.raises(trial.bench.MachineError, match=r"Kafka is missing\. Run python3 .*prepare\.py"):
        trial.measure()


@pytest.mark.slow("it fetches 54 MB and starts a broker; the output of Kafka's own tool is tested in test_tools.py")
def test_batches_and_compression_change_what_the_broker_stores(
    tmp_path: Path, programs_start: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_program("java", "openjdk-17-jre-headless")
    require_program("mvn", "maven")
    prepare, trial = module_of(WORKLOAD, "prepare"), module_of(WORKLOAD, "trial")
    (tmp_path / "pom.xml").write_text((WORKLOAD / "pom.xml").read_text())
    monkeypatch.setattr(prepare, "HERE", tmp_path)
    try:
        prepare.main()
    except SystemExit as error:
        lack(f"Maven's central repository cannot be reached: {error}")
    monkeypatch.setattr(trial, "LIB", tmp_path / "lib")
    found = []
    for words in ([], ["batch.size=131072", "compression.type=lz4"]):
        monkeypatch.setattr("sys.argv", ["trial.py", *words])
        found.append(trial.measure())
    assert found[1]["stored_bytes"] < 0.5 * found[0]["stored_bytes"]
    assert all(one["latency_ms"] > 0 and one["broker_cpu_us"] > 0 for one in found)
    monkeypatch.setattr("sys.argv", ["trial.py", "acks=0", "compression.type=zip"])
    with pytest.raises(trial.bench.WrongError):
        trial.measure()
