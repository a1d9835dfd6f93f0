"""A whole roll-out and a whole roll-back, by a real service and a real agent with three instances."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import trimtab
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.rolling import NAMES, ROLLING, rolling_system
from tests.factories.service import EmbeddedService
from trimtab.cli.main import app
from trimtab.live import LiveStatus

pytestmark = pytest.mark.usefixtures("programs_start")


@pytest.fixture
def system(tmp_path: Path, embedded_service: EmbeddedService) -> Iterator[Path]:
    """The folder of a system of three instances, with an agent that switches them."""
    with rolling_system(embedded_service, tmp_path) as system:
        yield system


def own(system: Path) -> list[bool]:
    """Return on which instances settings of a trial are in force."""
    return [(system / name).exists() for name in NAMES]


def create(client: trimtab.Client, name: str, watch: str) -> trimtab.Study:
    return client.create_study(
        name,
        component=ROLLING,
        objectives=[trimtab.Minimize("latency")],
        max_trials=1,
        live={"approve": "none", "watch": watch, "pairs": {"least": 6, "most": 24}},
    )


def test_kept_settings_go_to_all_instances_and_come_back(system: Path, embedded_service: EmbeddedService) -> None:
    with trimtab.Client(embedded_service.grpc_address, embedded_service.token, retry_seconds=PATIENCE) as client:
        study = create(client, f"roll-back-{system.parent.name}", "24h")

        def after_stages() -> LiveStatus | None:
            found = study.live_status()
            return found if found.rollout is not None and found.rollout.state == "watching" else None

        status = wait_for(after_stages, "the settings are in force on two instances")
        assert status is not None
        assert status.rollout is not None
        assert (status.rollout.in_force, status.rollout.held_back) == (("one", "two"), ("three",))
        assert own(system) == [True, True, False]
        assert study.status.state == "ACTIVE", "the end of the search waits for the watch"
        environment = {"TRIMTAB_URL": embedded_service.grpc_address, "TRIMTAB_TOKEN": embedded_service.token}
        told = CliRunner().invoke(app, ["live", "status", study.name], env=environment)
        assert "The settings of trial 1 are watched under their guards." in told.output
        assert "held back: three" in told.output
        # A guard on the oldest instance.
        (system / "one.latency").write_text("1000")
        wait_for(lambda: own(system) == [False, False, False], "the settings are taken back everywhere")
        study.stop()

        again = create(client, f"roll-out-{system.parent.name}", "1s")
        again.wait(PATIENCE)
        status = again.live_status()
        assert again.status.state == "COMPLETED", again.status.reason
        [kept] = status.kept
        assert (kept.instances, kept.in_force) == (NAMES, True)
        [check] = status.checks
        assert check.effect == pytest.approx(-0.223, abs=0.01)
        assert check.high is not None
        assert check.high < 0
        assert [trial.origin for trial in again.trials()] == ["suggested", "rollout", "rollout"]
        wait_for(lambda: own(system) == [False, False, False])
        assert [json.loads((system / f"{name}.own").read_text()) for name in NAMES] == [dict(kept.params)] * 3
