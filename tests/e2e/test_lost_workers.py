"""Workers that are killed or stopped while they compute: their operation goes on elsewhere at once."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import trimtab
from tests.factories.packages import ENTRY, SEARCH, write_package
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService, lives
from trimtab.errors import OperationFailed
from trimtab.study import Study

# An algorithm whose computation writes the number of its process into a file, and waits until it is let go or dies.
HELD = f"""
import os
import time
from pathlib import Path
{SEARCH}
    def suggest(self, count, **more):
        place = Path(os.environ["HELD_PLACE"])
        with (place / "began").open("a") as file:
            file.write(f"{{os.getpid()}}\\n")
        while not (place / "go").exists():
            if (place / "die").exists():
                os.kill(os.getpid(), 6)
            time.sleep(0.02)
        return super().suggest(count, **more)
"""


class Place:
    """The folder that the algorithm looks into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def began(self) -> list[int]:
        """Return the processes that have begun to compute, in their order."""
        path = self.folder / "began"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def wait_for_begin(self, number: int) -> int:
        """Wait until a computation has begun for the `number`-th time, and return its process."""
        wait_for(lambda: len(self.began()) >= number, f"a worker computes for the {number}th time")
        return self.began()[number - 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lost")


@pytest.fixture(scope="module")
def service(folder: Path, programs_start: None) -> Iterator[EmbeddedService]:
    """Two workers that nobody ever misses: their operations come back by what kills or replaces them alone."""
    costly = ENTRY.replace("Cost.CHEAP", "Cost.COSTLY")
    write_package(folder / "packages", "held", entry=costly, search=HELD)
    environment = {
        "PYTHONPATH": str(folder / "packages"),
        "HELD_PLACE": str(folder),
        "TRIMTAB_OPERATION_REQUEUE_SECONDS": "100000",
    }
    with EmbeddedService(folder / "service", environment, "--workers", "2") as service:
        yield service


@pytest.fixture
def place(folder: Path) -> Place:
    for name in ("began", "go", "die"):
        (folder / name).unlink(missing_ok=True)
    return Place(folder)


@pytest.fixture
def study(service: EmbeddedService, request: pytest.FixtureRequest) -> Iterator[Study]:
    with trimtab.Client(service.grpc_address, token=service.token) as client:
        space = [trimtab.Float("x", 0, 1)]
        yield client.create_study(request.node.name, space, objectives=[trimtab.Minimize("seconds")], algorithm="held")


@pytest.mark.slow("kills worker after worker; an operation of which workers die shows one of them")
def test_an_operation_outlives_the_kill_of_any_number_of_workers(study: Study, place: Place) -> None:
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(study.ask, timeout=PATIENCE)
        for kill in range(1, 6):
            os.kill(place.wait_for_begin(kill), signal.SIGKILL)
        place.wait_for_begin(6)
        (place.folder / "go").touch()
        (trial,) = asked.result(PATIENCE)
    assert trial.number == 1


@pytest.mark.slow("a killed worker shows the same")
def test_a_worker_that_is_stopped_hands_its_operation_over(study: Study, place: Place) -> None:
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(study.ask, timeout=PATIENCE)
        first = psutil.Process(place.wait_for_begin(1))
        first.terminate()
        second = place.wait_for_begin(2)
        assert second != first.pid
        assert lives(first), "it is not dead, and only gave its work away"
        (place.folder / "go").touch()
        (trial,) = asked.result(PATIENCE)
    assert trial.number == 1
    first.wait(PATIENCE)


def test_an_operation_of_which_workers_die_ends_with_the_reason(study: Study, place: Place) -> None:
    (place.folder / "die").touch()
    said = r"3 workers were lost while they computed it\. The last, .*, died\."
    with pytest.raises(OperationFailed, match=said) as caught:
        study.ask(timeout=PATIENCE)
    assert caught.value.code == "worker_lost"
    assert len(place.began()) == 3
