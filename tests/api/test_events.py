"""A study's event stream, from a real service as a browser reads it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import psutil
import pytest

from tests.api.conftest import SPEC
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService

Json = dict[str, Any]


@pytest.fixture
def client(embedded_service: EmbeddedService) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {embedded_service.token}"}
    with httpx.Client(base_url=f"{embedded_service.http_url}/api/v1", headers=headers, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def name(client: httpx.Client) -> str:
    name = f"events-{uuid.uuid4().hex[:8]}"
    client.post("/studies", json={"name": name, "spec": SPEC}).raise_for_status()
    return name


def events(response: httpx.Response) -> Iterator[tuple[str, int, Json]]:
    """Kind, id and data of each event, as the HTML standard reads the stream."""
    kind, number, data = "message", 0, ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if line == "" and data:
            yield kind, number, json.loads(data)
            kind, data = "message", ""
        elif field == "event":
            kind = value
        elif field == "id":
            number = int(value)
        elif field == "data":
            data += value


def watch(client: httpx.Client, name: str, **headers: str) -> Any:
    return client.stream("GET", f"/studies/{name}/events", headers=headers)


def test_a_long_study_begins_with_a_sample_and_continues_with_each_change(client: httpx.Client, name: str) -> None:
    for _ in range(3):
        client.post(f"/studies/{name}/suggestions", json={"count": 100}).raise_for_status()
    with client.stream("GET", f"/studies/{name}/events?most=200") as response:
        stream = events(response)
        _, number, data = next(stream)
        assert (data["sampled"], data["more"], number) == (True, False, data["study"]["revision"])
        assert 200 <= len(data["trials"]) <= 300
        client.post(f"/studies/{name}/trials/2/complete", json={"metrics": {"seconds": 1}}).raise_for_status()
        _, _, data = next(stream)
        assert ([trial["number"] for trial in data["trials"]], data["sampled"]) == ([2], False)
    assert client.get(f"/studies/{name}/events?most=5").json()["data"]["field"] == "most"


def test_the_stream_sends_all_trials_and_then_each_change(client: httpx.Client, name: str) -> None:
    client.post(f"/studies/{name}/suggestions", json={"count": 2}).raise_for_status()
    with watch(client, name) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert "no-store" in response.headers["Cache-Control"]
        stream = events(response)
        kind, number, data = next(stream)
        assert (kind, number, data["more"]) == ("change", data["revision"], False)
        assert [trial["number"] for trial in data["trials"]] == [1, 2]
        client.post(f"/studies/{name}/trials/2/complete", json={"metrics": {"seconds": 1}}).raise_for_status()
        kind, later, data = next(stream)
        assert later > number
        assert [(trial["number"], trial["state"]) for trial in data["trials"]] == [(2, "COMPLETED")]
        assert data["study"]["finished_count"] == 1
        client.patch(f"/studies/{name}", json={"state": "PAUSED"}).raise_for_status()
        assert next(stream)[2]["study"]["state"] == "PAUSED"
        client.delete(f"/studies/{name}").raise_for_status()
        assert next(stream)[0] == "deleted"
        assert list(stream) == []


def test_a_broken_stream_goes_on_where_it_was(client: httpx.Client, name: str) -> None:
    client.post(f"/studies/{name}/suggestions", json={"count": 2}).raise_for_status()
    with watch(client, name) as response:
        _, seen, _ = next(events(response))
    client.post(f"/studies/{name}/trials/1/complete", json={"metrics": {"seconds": 1}}).raise_for_status()
    with watch(client, name, **{"Last-Event-ID": str(seen)}) as response:
        assert [trial["number"] for trial in next(events(response))[2]["trials"]] == [1]
    with client.stream("GET", f"/studies/{name}/events?after_revision={seen}") as response:
        assert [trial["number"] for trial in next(events(response))[2]["trials"]] == [1]
    # Of a study of this name that is gone a higher revision was seen.
    with watch(client, name, **{"Last-Event-ID": "999999"}) as response:
        assert len(next(events(response))[2]["trials"]) == 2


def test_a_long_history_comes_in_parts_without_a_gap(client: httpx.Client, name: str) -> None:
    for _ in range(2):
        client.post(f"/studies/{name}/suggestions", json={"count": 600}).raise_for_status()
    with watch(client, name) as response:
        stream = events(response)
        numbers: list[int] = []
        while True:
            _, _, data = next(stream)
            numbers += [trial["number"] for trial in data["trials"]]
            if not data["more"]:
                break
    assert numbers == list(range(1, 1201))


def test_a_stream_keeps_no_thread(embedded_service: EmbeddedService, client: httpx.Client, name: str) -> None:
    web = psutil.Process(embedded_service.processes()["web"])
    with ExitStack() as open_streams:
        for _ in range(10):
            assert next(events(open_streams.enter_context(watch(client, name))))[0] == "change"
        before = web.num_threads()
        for _ in range(30):
            assert next(events(open_streams.enter_context(watch(client, name))))[0] == "change"
        # Other requests of this process may have begun threads of their own.
        assert web.num_threads() < before + 15
        client.get("/studies").raise_for_status()


def test_errors_come_as_problem_documents(client: httpx.Client, name: str) -> None:
    for path, status, code in (
        ("/studies/none/events", 404, "study_not_found"),
        (f"/studies/{name}/events?after_revision=-1", 400, "invalid_argument"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert client.post(f"/studies/{name}/events").status_code == 405


def test_events_group_a_tenants_changes_by_kind_and_limit_their_rate(client: httpx.Client, name: str) -> None:
    """However many there are, and whoever else changes something in this service: twice per second at most."""
    with client.stream("GET", "/events") as response:
        stream = events(response)
        assert next(stream)[0] == "ready"
        # These events may come from the start of the listener itself.
        _until(stream, "studies", lambda: client.post(f"/studies/{name}/suggestions", json={"count": 60}))
        began = time.monotonic()
        for number in range(1, 61):
            done = client.post(f"/studies/{name}/trials/{number}/complete", json={"metrics": {"seconds": 1}})
            done.raise_for_status()
        reported = 0
        client.post("/components", json={"text": f"name: {name}\napplications: {{main: {{command: [x]}}}}\n"})
        for kind, _, data in stream:
            reported += 1
            assert (kind, set(data)) == ("change", {"kinds"})
            if "components" in data["kinds"]:
                break
        assert reported <= 2 * (time.monotonic() - began) + 2
    client.delete(f"/components/{name}/files").raise_for_status()
    assert client.post("/events").status_code == 405
    assert httpx.get(f"{client.base_url}events", timeout=PATIENCE).status_code == 401


def _until(stream: Iterator[tuple[str, int, Json]], kind: str, act: Callable[[], httpx.Response]) -> None:
    act().raise_for_status()
    while kind not in next(stream)[2]["kinds"]:
        pass
