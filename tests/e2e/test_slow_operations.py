"""A tenant whose suggestions never end delays no other tenant's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import trimtab
from tests.factories.packages import ENTRY, SEARCH, write_package
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from trimtab.errors import TrimtabError

# An algorithm that computes without an end.
ENDLESS = f"""
import os
from pathlib import Path
{SEARCH}
    def suggest(self, count, **more):
        with (Path(os.environ["ENDLESS_PLACE"]) / "began").open("a") as file:
            file.write(f"{{os.getpid()}}\\n")
        while True:
            pass
"""
OBJECTIVES = [trimtab.Minimize("loss")]
SPACE = [trimtab.Float("x", 0, 1)]
FIRST_TRIALS = 6


@pytest.fixture
def service(tmp_path: Path, programs_start: None) -> Iterator[EmbeddedService]:
    """One worker, whose slow operations may go on for longer than any test."""
    write_package(tmp_path / "packages", "endless", entry=ENTRY.replace("Cost.CHEAP", "Cost.COSTLY"), search=ENDLESS)
    environment = {
        "PYTHONPATH": str(tmp_path / "packages"),
        "ENDLESS_PLACE": str(tmp_path),
        "TRIMTAB_OPERATION_CPU_SECONDS": "100000",
    }
    with EmbeddedService(tmp_path / "service", environment) as service:
        yield service


def token_of_another_tenant(service: EmbeddedService) -> str:
    found = json.loads((service.data_dir / "service.json").read_text())
    environment = {
        **service.environment,
        "DJANGO_SETTINGS_MODULE": "service.config.settings.embedded",
        "TRIMTAB_DATA_DIR": str(service.data_dir),
        "DATABASE_URL": found["database_url"],
    }
    command = [sys.executable, "-m", "tests.chaos.tenant", "other", "0"]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]


def test_another_tenant_is_served_while_suggestions_never_end(service: EmbeddedService, tmp_path: Path) -> None:
    place = tmp_path / "began"

    def began() -> list[int]:
        return [int(line) for line in place.read_text().split()] if place.exists() else []

    with (
        trimtab.Client(service.grpc_address, token=service.token) as attacker,
        trimtab.Client(service.grpc_address, token=token_of_another_tenant(service)) as client,
        ThreadPoolExecutor(2) as threads,
    ):
        studies = [
            attacker.create_study(f"endless-{n}", SPACE, objectives=OBJECTIVES, algorithm="endless") for n in "ab"
        ]
        asked = [threads.submit(study.ask, timeout=PATIENCE) for study in studies]
        wait_for(lambda: len(began()) >= 3, "one of them is computed as a slow operation")
        study = client.create_study("quick", SPACE, objectives=OBJECTIVES, algorithm="gp")
        for number in range(FIRST_TRIALS + 2):
            (trial,) = study.ask(timeout=PATIENCE)
            assert trial.number == number + 1
            study.tell(trial, (float(trial.params["x"]) - 0.3) ** 2)
        slow = began()[2]
        assert slow in service.computing(), "it still computes"
        for one in studies:
            attacker.delete_study(one.name)
        for ask in asked:
            with pytest.raises(TrimtabError):
                ask.result(PATIENCE)
    assert slow not in began()[:2], "another process than the one that began it"
