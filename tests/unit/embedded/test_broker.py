"""Messages as files: a reader sees only complete messages and takes each once."""

import pickle
import shutil
import tempfile
import threading
import uuid
from pathlib import Path

import pytest
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


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"properties": {}}',
        b'{"properties": null, "body": 1}',
        b'{"body": "1", "properties": {"delivery_tag": "1", "body_encoding": "no-such"}}',
        b"[" * 100_000,
        pickle.dumps(ValueError),
    ],
)
def test_an_unreadable_message_is_discarded_and_the_next_one_read(tmp_path: Path, content: bytes) -> None:
    with connect(tmp_path) as connection:
        name = f"forged-{uuid.uuid4().hex}"
        queue = connection.SimpleQueue(name)
        (tmp_path / f"{0:020d}_forged.{name}.msg").write_bytes(content)
        queue.put({"number": 1})
        message = queue.get(timeout=PATIENCE)
        assert message.payload == {"number": 1}
        message.ack()
    assert not list(tmp_path.glob("*_forged*"))


def test_a_message_never_leaves_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder for temporary files belongs to all users."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o500)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    seen: list[Path] = []
    monkeypatch.setattr(shutil, "move", lambda *words: seen.append(Path(words[1])))
    with connect(tmp_path / "broker") as connection:
        queue = connection.SimpleQueue("here")
        queue.put({"number": 1})
        queue.get(timeout=PATIENCE).ack()
    assert not seen
    assert [path.name for path in (tmp_path / "broker").iterdir()] == ["control"]
