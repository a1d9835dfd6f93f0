"""Computations without an end, in a service at work: they end, and others go on meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

import trimtab
from tests.factories.packages import ENTRY, SEARCH, write_package
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from trimtab.errors import OperationFailed, TrimtabError
from trimtab.study import Study

# Algorithms that compute without an end: between steps of Python, and within one call of a library.
ENDLESS = f"""
import hashlib
import os
from pathlib import Path
{SEARCH}
    def suggest(self, count, **more):
        with (Path(os.environ["ENDLESS_PLACE"]) / "began").open("a") as file:
            file.write(f"{{os.getpid()}}\\n")
        if self.problem.metrics == ("stuck",):
            hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
        while self.problem.metrics == ("endless",):
            pass
        return super().suggest(count, **more)
"""
SPACE = [trimtab.Float("x", 0, 1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("endless")


@pytest.fixture(scope="module")
def service(folder: Path, programs_start: None) -> Iterator[EmbeddedService]:
    """One worker; a request may use half a second of CPU, and a computation of the worker a second."""
    write_package(folder / "packages", "endless", entry=ENTRY.replace("Cost.CHEAP", "Cost.COSTLY"), search=ENDLESS)
    write_package(folder / "packages", "endless-cheap", search=ENDLESS)
    environment = {
        "PYTHONPATH": str(folder / "packages"),
        "ENDLESS_PLACE": str(folder),
        "TRIMTAB_REQUEST_CPU_SECONDS": "0.5",
        "TRIMTAB_OPERATION_CPU_SECONDS": "1",
    }
    with EmbeddedService(folder / "service", environment) as service:
        yield service


@pytest.fixture
def client(service: EmbeddedService) -> Iterator[trimtab.Client]:
    with trimtab.Client(service.grpc_address, token=service.token) as client:
        yield client


def create(client: trimtab.Client, name: str, metric: str, algorithm: str) -> Study:
    return client.create_study(name, space=SPACE, objectives=[trimtab.Minimize(metric)], algorithm=algorithm)


def worker_of(service: EmbeddedService) -> list[int]:
    """Return the processes of the worker, which starts last."""
    wait_for(lambda: len(service.computing()) == 2, "a worker runs")
    return service.computing()


def processes(folder: Path) -> list[int]:
    path = folder / "began"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_a_worker_ends_a_computation_and_goes_on(client: trimtab.Client, service: EmbeddedService) -> None:
    worker = worker_of(service)
    study, other = (create(client, name, name, "endless") for name in ("endless", "fine"))
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(study.ask, timeout=PATIENCE)
        (trial,) = other.ask(timeout=PATIENCE)
        with pytest.raises(OperationFailed, match="more than 1 s of CPU") as caught:
            asked.result(PATIENCE)
    assert caught.value.code == "computation_too_long"
    assert trial.number == 1
    assert worker_of(service) == worker


def test_a_worker_ends_the_computation_of_a_deleted_study(client: trimtab.Client, folder: Path) -> None:
    study = create(client, "deleted", "endless", "endless")
    before = len(processes(folder))
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(study.ask, timeout=PATIENCE)
        wait_for(lambda: len(processes(folder)) > before, "a worker computes")
        client.delete_study("deleted")
        (trial,) = create(client, "after", "fine", "endless").ask(timeout=PATIENCE)
        with pytest.raises(TrimtabError):
            asked.result(PATIENCE)
    assert trial.number == 1


@pytest.mark.parametrize("way", ["grpc", "rest"])
def test_calls_that_compute_without_an_end_leave_others_alone(
    client: trimtab.Client, service: EmbeddedService, folder: Path, way: str
) -> None:
    """Twelve at once, which are more than a tenant's share of threads."""
    name = f"calls-{way}"
    study, other = create(client, name, "endless", "endless-cheap"), create(client, f"{name}-other", "fine", "random")
    headers = {"Authorization": f"Bearer {service.token}"}

    def attack(_: int) -> str:
        if way == "grpc":
            try:
                study.ask(timeout=PATIENCE)
            except TrimtabError as error:
                return error.code
            return ""
        url = f"{service.http_url}/api/v1/studies/{name}/suggestions"
        answer = httpx.post(url, json={"count": 1}, headers=headers, timeout=PATIENCE)
        return str(answer.json().get("code"))

    before = len(processes(folder))
    with ThreadPoolExecutor(12) as threads:
        attacks = [threads.submit(attack, number) for number in range(12)]
        wait_for(lambda: len(processes(folder)) > before, "they compute")
        assert other.ask(timeout=PATIENCE)
        # Another request of the same tenant waits for its turn, or is told to come again.
        wait_for(
            lambda: httpx.get(f"{service.http_url}/api/v1/studies", headers=headers, timeout=PATIENCE).is_success,
            "it is served",
        )
        codes = {one.result(4 * PATIENCE) for one in attacks}
    assert "computation_too_long" in codes
    assert codes <= {"computation_too_long", "too_many_requests"}


def test_computations_end_when_their_callers_have_gone(
    client: trimtab.Client, service: EmbeddedService, folder: Path
) -> None:
    create(client, "gone", "endless", "endless-cheap")
    url = f"{service.http_url}/api/v1/studies/gone/suggestions"
    before = len(processes(folder))
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(url, json={"count": 1}, headers={"Authorization": f"Bearer {service.token}"}, timeout=0.5)
    wait_for(lambda: len(processes(folder)) > before, "it computes")
    web = psutil.Process(service.processes()["web"])

    def is_idle() -> bool:
        used = web.cpu_times()
        time.sleep(0.5)
        now = web.cpu_times()
        return now.user + now.system - used.user - used.system < 0.2

    wait_for(is_idle, "the web process computes no more")


@pytest.mark.slow("a library is left after 20 s of CPU more; unit tests show the end of the process")
def test_a_worker_that_does_not_leave_a_library_is_replaced(
    client: trimtab.Client, service: EmbeddedService, folder: Path
) -> None:
    study, other = create(client, "stuck", "stuck", "endless"), create(client, "after-stuck", "fine", "endless")
    worker = worker_of(service)
    with pytest.raises(OperationFailed, match="more than 1 s of CPU") as caught:
        study.ask(timeout=4 * PATIENCE)
    assert caught.value.code == "computation_too_long"
    assert other.ask(timeout=PATIENCE)
    assert worker_of(service) != worker
