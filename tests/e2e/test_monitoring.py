"""The alert rules and the dashboard, with the metrics that the real processes serve."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

import trimtab
from tests.factories.compose import DEPLOY
from tests.factories.hosted import TOKEN, Hosted, hosted_service
from tests.factories.patience import PATIENCE
from tests.factories.service import require_program

FOLDER = DEPLOY / "monitoring"
SUFFIX = re.compile(r"_(bucket|count|sum)$")


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Hosted]:
    with hosted_service(tmp_path_factory.mktemp("monitored"), redis_url, workers=1) as hosted:
        yield hosted


@pytest.mark.parametrize("arguments", [("check", "config", "prometheus.yaml"), ("test", "rules", "alerts_test.yaml")])
def test_prometheus_accepts_the_files_and_the_alerts_fire_when_they_should(
    arguments: tuple[str, ...], programs_start: None
) -> None:
    argv = [require_program("promtool", "prometheus"), *arguments]
    done = subprocess.run(argv, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_that_they_name_is_served(hosted: Hosted) -> None:
    with trimtab.Client(hosted.grpc_address, token=TOKEN) as client:
        study = client.create_study(
            "monitored", space=[trimtab.Float("x", 0, 1)], objectives=[trimtab.Minimize("y")], algorithm="gp"
        )
        for _ in range(8):
            [trial] = study.ask()
            study.tell(trial, float(trial.params["x"]))
    httpx.get(f"{hosted.http_url}/api/v1/sign-in", timeout=PATIENCE).raise_for_status()
    served = {"up"}
    for address in (hosted.http_url.removeprefix("http://"), *(metrics_of(hosted, name) for name in hosted.processes)):
        if address:
            text = httpx.get(f"http://{address}/metrics", timeout=PATIENCE).raise_for_status().text
            served |= {SUFFIX.sub("", name) for name in re.findall(r"^([a-z_]+)(?:\{| )", text, re.MULTILINE)}
    expressions = "\n".join([*alerts(), *(target["expr"] for panel in dashboard() for target in panel["targets"])])
    named = set(re.findall(r"\b(?:trimtab|process)_[a-z_]+\b", expressions)) | {"up"}
    assert len(named) > 12
    assert {SUFFIX.sub("", name) for name in named} - served == set()


def test_every_alert_is_explained() -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"]
    page = (DEPLOY.parent / "docs/reference/service-levels.md").read_text()
    assert {f"`{rule['alert']}`" for rule in rules} <= set(re.findall(r"`Trimtab\w+`", page))


def metrics_of(hosted: Hosted, name: str) -> str:
    """Return the address of a process's endpoint; "" if it has none."""
    argv = list(hosted.processes[name].argv)
    return argv[argv.index("--metrics") + 1] if "--metrics" in argv else ""


def alerts() -> list[str]:
    return [
        rule["expr"]
        for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
        for rule in group["rules"]
    ]


def dashboard() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    return panels
