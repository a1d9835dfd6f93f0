"""Tests of the studies with a context: the comparison with a search, and the controller."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.agent.workloads.shared import check_refusal, module_of, run, run_script
from tests.agent.workloads.web_proxy.proxies import WORKLOAD


def table(folder: Path) -> Path:
    """Write a study's table that has the default in each context."""
    settings = {"policy": "disk", "cached-form": "both", "disk-form": "requested"}
    contexts = [{"device": device, "background": count} for device in ("hdd", "ssd") for count in (0, 4)]
    file = folder / "table.json"
    file.write_text(json.dumps({"rows": [{"context": one, "settings": settings} for one in contexts]}))
    return file


def test_the_best_of_the_search_is_compared() -> None:
    contexts = module_of(WORKLOAD, "contexts")
    plan = contexts.Plan.read(WORKLOAD / "context.yml")
    assert len(plan.contexts) == 4
    rates = {"disk": 10.0, "decompress": 8.0}
    rounds = {}
    for context in plan.contexts:
        for settings in contexts.EVERY:
            favourite = "decompress" if "hdd" in context else "disk"
            rate = (20.0 if settings[0] == favourite else rates.get(settings[0], 1.0)) + (settings[1] == "both")
            rounds[plan.cell("grid", context, settings).name] = [{"requests_per_second": rate}] * 2
    own, fixed = plan.best(rounds)
    assert {context[0]: settings[:2] for context, settings in own.items()} == {
        "hdd": ("decompress", "both"),
        "ssd": ("disk", "both"),
    }
    assert fixed[:2] == ("disk", "both")
    assert contexts.enough((0.97, 0.96, 0.98)) == "holds"
    assert contexts.enough((0.9, 0.85, 0.94)) == "does not hold"
    assert contexts.enough((0.95, 0.9, 1.0)) == "not known"


@pytest.mark.slow("a script of measurements, which takes minutes")
def test_a_comparison(small: Path, tmp_path: Path, programs_start: None) -> None:
    words = [small / "context.yml", table(tmp_path), "--grid-rounds", "1", "--turns", "2", "--seconds", "0.05"]
    answer = run_script(small, "contexts", *words, "--warm-up", "0.02", "--folder", tmp_path / "measured")
    assert answer.returncode == 0, answer.stderr
    judged = (tmp_path / "measured" / "judged.md").read_text()
    assert judged.count("the same settings") >= 4
    assert "| all contexts | study > hybrid | " in judged


def test_a_table_of_another_study_is_refused(tmp_path: Path, programs_start: None) -> None:
    file = tmp_path / "table.json"
    file.write_text('{"rows": []}')
    answer = run_script(WORKLOAD, "contexts", WORKLOAD / "context.yml", file, "--folder", tmp_path / "measured")
    check_refusal(answer, f"{file} has the contexts [] in place of ")
    answer = run_script(WORKLOAD, "contexts", WORKLOAD / "study.yml", file, "--folder", tmp_path / "measured")
    check_refusal(answer, f"{WORKLOAD / 'study.yml'} is no study file with a context")


def test_the_controller_reads_the_context_and_applies_settings(proxy: SimpleNamespace) -> None:
    control = proxy._control
    found = json.loads(run([sys.executable, WORKLOAD / "follow.py", "context", control]).stdout)
    assert found["cache-bytes"] == 10_000_000
    assert found["background"] >= 0
    script = (
        "import json, subprocess, sys; sys.exit(subprocess.run(sys.argv[2:], input=sys.argv[1], text=True).returncode)"
    )
    apply = [sys.executable, WORKLOAD / "follow.py", "apply", control]
    settings = {"policy": "decompress", "disk-form": "gzip"}
    assert run([sys.executable, "-c", script, json.dumps({"settings": settings}), *apply]).returncode == 0
    assert (proxy.command("get")["policy"], proxy.command("get")["disk-form"]) == ("decompress", "gzip")
    answer = run([sys.executable, "-c", script, json.dumps({"settings": {"policy": "guess"}}), *apply])
    assert answer.returncode == 1
    assert "guess" in answer.stderr
    assert proxy.command("get")["policy"] == "decompress"


@pytest.mark.parametrize("name", ["context.yml", "context-hits.yml"])
def test_the_study_files_have_four_contexts(name: str) -> None:
    study = yaml.safe_load((WORKLOAD / name).read_text())
    plan = module_of(WORKLOAD, "contexts").Plan.read(WORKLOAD / name)
    assert set(plan.names) == set(study["context"])
    assert len(plan.contexts) == 4
