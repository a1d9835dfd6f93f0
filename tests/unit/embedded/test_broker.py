"""Messages as files: a reader sees only complete messages and takes each once."""

import threading
from pathlib import Path

from kombu import Connection

from tests.factories.patience import PATIENCE


def connect(folder: Path) -> Connection:
    (folder / "control").mkdir(parents=True, exist_ok=True)
    options = {
        "data_folder_in": str(folder),
        "data_folder_out": str(folder),
        "control_folder": str(folder / "control"),
        "polling_interval": 0.01,
    }
    return Connection("filesystem://", transport="service.embedded.broker:Transport", transport_options=options)


def test_a_message_is_invisible_before_it_is_complete(tmp_path: Path) -> None:
    count = 300
    taken: list[int] = []
    failures: list[Exception] = []
    with connect(tmp_path) as reading:
        # A name that no other test uses: kombu keeps the queues of the whole process.
        queue = reading.SimpleQueue("whole")

        def read() -> None:
            try:
                while len(taken) < count:
                    message = queue.get(timeout=PATIENCE)
                    taken.append(message.payload["number"])
                    message.ack()
            except Exception as error:
                failures.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        with connect(tmp_path) as writing:
            sender = writing.SimpleQueue("whole")
            for number in range(count):
                sender.put({"number": number, "padding": "x" * 20_000})
        reader.join(PATIENCE)
    assert not failures
    assert taken == list(range(count))  # each once, oldest first
    assert not list(tmp_path.glob("*.msg"))
    assert not list(tmp_path.glob("*.unfinished"))


def test_queues_are_separate(tmp_path: Path) -> None:
    with connect(tmp_path) as one, connect(tmp_path) as other:
        compute = one.SimpleQueue("compute")
        sweep = other.SimpleQueue("sweep")
        compute.put({"for": "compute"})
        sweep.put({"for": "sweep"})
        assert sweep.get(timeout=PATIENCE).payload == {"for": "sweep"}
        assert compute.get(timeout=PATIENCE).payload == {"for": "compute"}
