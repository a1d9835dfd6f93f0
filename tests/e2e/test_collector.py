"""The configuration of the OpenTelemetry Collector, in a real collector that is built from its modules."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import trimtab
from service.embedded.processes import Child, stop
from tests.factories.collector import collector
from tests.factories.compose import DEPLOY
from tests.factories.patience import wait_for
from tests.factories.ports import free_port
from tests.factories.service import EmbeddedService, require_program

CONFIGURATION = DEPLOY / "monitoring" / "collector.yaml"
SOURCES = Path(__file__).resolve().parents[1] / "factories" / "otelcol"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """Build a collector with the parts that the configuration names. The first build takes minutes."""
    go = require_program("go", "golang-go")
    folder = tmp_path_factory.mktemp("collector")
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    subprocess.run([go, "build", "-mod=mod", "-o", "collector", "."], cwd=folder, check=True)
    return folder / "collector"


@pytest.fixture
def destination() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.mark.slow("builds a collector from source")
def test_spans_of_the_service_arrive_also_after_the_destination_was_away(
    program: Path, tmp_path: Path, destination: ExitStack
) -> None:
    ports = [free_port(), free_port()]
    addresses = [f"127.0.0.1:{port}" for port in ports]
    environment = {**os.environ, "COLLECTOR_ADDRESS": addresses[0], "TRACES_ENDPOINT": addresses[1]}
    child = Child("collector", [str(program), "--config", str(CONFIGURATION)], environment, tmp_path / "collector.log")
    child.start()
    try:
        wait_for(lambda: accepts(ports[0]) or not child.running(), "the collector listens")
        assert child.running(), (tmp_path / "collector.log").read_text()
        traced = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{addresses[0]}", "OTEL_BSP_SCHEDULE_DELAY": "100"}
        with EmbeddedService(tmp_path / "service", traced) as service:
            with trimtab.Client(service.grpc_address, token=service.token) as client:
                client.list_studies()
            # The destination is away until the collector has failed to reach it.
            wait_for(lambda: "connection refused" in (tmp_path / "collector.log").read_text(), "it tries to send")
            receiver = destination.enter_context(collector(ports[1]))
            wait_for(lambda: any(span.name.endswith("/ListStudies") for span in receiver.spans()), "the spans arrive")
    finally:
        stop([child])


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
