"""Messages that somebody else has put into the broker: no code of theirs runs, and the workers go on."""

from __future__ import annotations

import base64
import json
import os
import pickle
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import trimtab
from tests.factories.hosted import TOKEN, hosted_service
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService

Envelope = dict[str, Any]


class Harm:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.marker}",)


def envelope(task: str, *arguments: object, body: bytes | None = None, kind: str = "application/json") -> Envelope:
    """Return a message as kombu writes it; `body` replaces the task's arguments."""
    key = str(uuid.uuid4())
    content = json.dumps([arguments, {}, {}]).encode() if body is None else body
    return {
        "body": base64.b64encode(content).decode(),
        "content-encoding": "binary" if kind != "application/json" else "utf-8",
        "content-type": kind,
        "headers": {"lang": "py", "task": task, "id": key, "root_id": key, "parent_id": None, "group": None},
        "properties": {
            "correlation_id": key,
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": "compute"},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": key,
        },
    }


COMPUTE = "service.workers.tasks.compute_operation"
INSIGHT = "service.workers.tasks.compute_insight"
DELIVER = "service.workers.tasks.deliver_notice"


def forged(marker: Path) -> Iterator[bytes]:
    """Yield messages of somebody who knows Celery."""
    code = pickle.dumps(((Harm(marker),), {}, {}))
    for kind in ("application/x-python-serialize", "application/x-yaml", "application/x-msgpack", "text/plain"):
        yield json.dumps(envelope(COMPUTE, body=code, kind=kind)).encode()
    yield json.dumps(envelope(COMPUTE, body=code)).encode()
    program = f"touch {marker}"
    for task in ("os.system", "subprocess.call", "celery.backend_cleanup", "no.such.task", "", "service.workers.tasks"):
        yield json.dumps(envelope(task, program)).encode()
    step = {"task": "os.system", "args": [program], "kwargs": {}, "options": {}, "immutable": True}
    yield json.dumps(envelope("celery.map", step, [[program]])).encode()
    yield json.dumps(envelope("celery.chain", [step])).encode()
    linked = envelope(COMPUTE, "x")
    linked["body"] = base64.b64encode(
        json.dumps([["x"], {}, {"callbacks": [step], "errbacks": [step], "chain": [step]}]).encode()
    ).decode()
    yield json.dumps(linked).encode()
    for task in (COMPUTE, INSIGHT, DELIVER):
        arguments: tuple[object, ...]
        for arguments in (
            (),
            (1, 2, 3),
            ("'; DROP TABLE studies_study; --",),
            (-1, 10**30),
            (None, {"a": []}),
            (1, "x"),
        ):
            yield json.dumps(envelope(task, *arguments)).encode()
    wrong = envelope(COMPUTE, "x")
    wrong["headers"] |= {"timelimit": ["a", {}], "eta": "yesterday", "expires": [], "retries": "many", "traceparent": 7}
    yield json.dumps(wrong).encode()
    yield from (b"", b"{", b"null", b"{}", b"\xff\x00", b'{"properties": {}}', b"[" * 50_000, code)


def asks(client: trimtab.Client, name: str) -> None:
    """Have a worker compute."""
    study = client.create_study(
        name, [trimtab.Float("x", 0, 1)], [trimtab.Minimize("y")], algorithm="smbo", algorithm_options={}, seed=0
    )
    for _ in range(4):
        for trial in study.ask(4, timeout=PATIENCE):
            study.tell(trial, float(trial.params["x"]))


def test_forged_files_in_the_folder_of_messages(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    service, marker = embedded_service, tmp_path / "marker"
    folder = service.data_dir / "broker"
    for private in (folder, folder / "control", service.data_dir / "logs", service.data_dir / "alive"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    wait_for(lambda: len(service.computing()) == 2, "the worker runs")
    processes = service.computing()
    for number, content in enumerate(forged(marker)):
        for queue in ("compute", "slow"):
            (folder / f"{number:020d}_forged.{queue}.msg").write_bytes(content)
    with trimtab.Client(service.grpc_address, service.token) as client:
        asks(client, f"forged-{uuid.uuid4().hex[:8]}")
    wait_for(lambda: not list(folder.glob("*_forged*")), "all messages are read")
    assert not marker.exists()
    assert service.computing() == processes, "the worker did not end"


def test_others_may_not_write_to_the_folder_of_messages(own_service: EmbeddedService) -> None:
    """A service that is started without a mask, in a folder to which all may write."""
    own_service.data_dir.mkdir(parents=True, exist_ok=True)
    own_service.data_dir.chmod(0o777)
    before = os.umask(0)
    try:
        own_service.start()
    finally:
        os.umask(before)
    open_to_others = [
        path
        for path in (own_service.data_dir, *own_service.data_dir.iterdir(), own_service.data_dir / "broker" / "control")
        if path.is_dir() and stat.S_IMODE(path.stat().st_mode) & 0o022
    ]
    assert not open_to_others


@pytest.mark.slow("the folder of messages shows the same; starts a hosted service")
def test_forged_messages_in_redis(redis_url: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with (
        hosted_service(tmp_path, redis_url, workers=1) as hosted,
        trimtab.Client(hosted.grpc_address, TOKEN) as client,
        redis.Redis.from_url(redis_url) as broker,
    ):
        asks(client, "before")
        for content in forged(marker):
            broker.lpush("compute", content)
            broker.lpush("sweep", content)
        broker.sadd("_kombu.binding.compute", "no separators", "\x06\x16".join(["#", "", "elsewhere"]))
        broker.lpush("elsewhere", b"x")
        asks(client, "after")
        wait_for(lambda: broker.llen("compute") == 0, "all messages are read")
    assert not marker.exists()
