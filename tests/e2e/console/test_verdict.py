"""One verdict for a study, in the same numbers for everyone who asks."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import trimtab
from tests.factories.browser import NEEDS_BROWSER
from tests.factories.console import Rest
from tests.factories.service import EmbeddedService, wait_for

pytestmark = NEEDS_BROWSER


def cli(service: EmbeddedService, *arguments: str) -> str:
    environment = {**os.environ, "TRIMTAB_URL": service.grpc_address, "TRIMTAB_TOKEN": service.token}
    command = [str(Path(sys.executable).with_name("trimtab")), *arguments]
    run = subprocess.run(
        command, env={**environment, "COLUMNS": "300"}, capture_output=True, text=True, check=True, timeout=120
    )
    return run.stdout


@pytest.mark.parametrize(("check", "level"), [({"max_trials": 12}, "proven"), (None, "provisional")])
def test_everyone_reads_the_same_verdict(
    page: Page, api: Rest, service: EmbeddedService, check: dict[str, int] | None, level: str
) -> None:
    name = f"verdict-{level}"
    api.study(name, algorithm={"name": "ga"}, noisy=True, budget={"max_trials": 24}, final_check=check)
    api.measure(name, 24)
    while api("GET", f"/studies/{name}")["state"] == "ACTIVE":
        api.measure(name, 1)
    verdict: dict[str, Any] = api("GET", f"/studies/{name}/analysis")["verdict"]
    assert verdict["level"] == level
    assert verdict["gain"] == pytest.approx(1 - verdict["value"] / verdict["default"])

    with trimtab.Client(service.grpc_address, token=service.token) as client:
        found = client.get_study(name).verdict
    assert found is not None
    assert asdict(found) == verdict

    assert json.loads(cli(service, "study", "show", name, "--json"))["verdict"] == verdict
    assert f"Verdict: {verdict['text']}" in cli(service, "study", "show", name)

    exported = api.text(f"/studies/{name}/verdict.csv")
    (row,) = csv.DictReader(io.StringIO(exported))
    assert (row["study"], row["level"], row["text"]) == (name, level, verdict["text"])
    for key in ("value", "default", "gain", "low", "high", "runs", "default_runs", "trials"):
        assert float(row[key]) == verdict[key], key

    def listed() -> dict[str, Any]:
        [one] = [study for study in api("GET", "/studies")["studies"] if study["name"] == name]
        return one["objectives"][0] if one["objectives"] else {}

    # The list is some seconds behind.
    wait_for(lambda: listed().get("best") == verdict["value"], 60, "the list has the last numbers")
    assert {key: listed()[key] for key in ("level", "default", "gain", "low", "high")} == {
        key: verdict[key] for key in ("level", "default", "gain", "low", "high")
    }

    page.goto(f"/studies/{name}")
    gain = page.get_by_role("region", name="Gain over the default")
    expect(gain).to_contain_text(verdict["text"])
    expect(gain).to_contain_text(f"{100 * verdict['gain']:.1f}")
