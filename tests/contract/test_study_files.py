"""A study file means the same, and has the same errors, over REST and over gRPC, which the command line uses."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.factories.study_files import BAD, GOOD


@pytest.fixture
def rest(embedded_service: EmbeddedService) -> Iterator[httpx.Client]:
    authorization = {"Authorization": f"Bearer {embedded_service.token}"}
    with httpx.Client(
        base_url=f"{embedded_service.http_url}/api/v1", headers=authorization, timeout=PATIENCE
    ) as client:
        yield client


@pytest.fixture
def client(embedded_service: EmbeddedService) -> Iterator[trimtab.Client]:
    with trimtab.Client(embedded_service.grpc_address, embedded_service.token) as client:
        yield client


@pytest.mark.parametrize("title", GOOD)
def test_both_read_the_same_spec(rest: httpx.Client, client: trimtab.Client, title: str) -> None:
    planned = rest.post("/plans", json={"file": GOOD[title]})
    assert planned.status_code == 200, planned.text
    name = f"file-{title.replace(' ', '-')}"
    _, spec = client.parse_study_file(GOOD[title])
    study = client.create_from_spec(name, spec)
    created: dict[str, Any] = rest.get(f"/studies/{name}").json()
    assert created["spec"] == planned.json()["spec"]
    # A study is written as a file that describes the same study.
    text = rest.get(f"/studies/{name}/file").json()["text"]
    assert text == study.as_file()
    for again in (text, json.dumps(study.file_content())):
        assert rest.post("/plans", json={"file": again}).json()["spec"] == created["spec"], again
    posted = rest.post("/studies", json={"name": f"{name}-again", "file": text})
    assert (posted.status_code, posted.json()["spec"]) == (201, created["spec"])
    for one in (name, f"{name}-again"):
        client.delete_study(one)


@pytest.mark.parametrize("title", BAD)
def test_both_refuse_with_the_same_error(rest: httpx.Client, client: trimtab.Client, title: str) -> None:
    text, field, words, line = BAD[title]
    refused = rest.post("/plans", json={"file": text})
    assert refused.status_code == 400, refused.text
    problem = refused.json()
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        client.parse_study_file(text)
    assert (caught.value.code, caught.value.message) == (problem["code"], problem["detail"])
    # gRPC, which carries errors in headers, shortens long values.
    reported = {**caught.value.data}
    assert str(problem["data"].pop("allowed")).startswith(str(reported.pop("allowed")).removesuffix("…"))
    assert reported == problem["data"]
    assert (problem["data"]["field"], problem["data"].get("line")) == (field, line), problem["detail"]
    assert words in problem["detail"]
    created = rest.post("/studies", json={"name": "refused", "file": text})
    assert (created.status_code, created.json()["detail"]) == (400, problem["detail"])


def test_a_request_has_either_a_spec_or_a_file(rest: httpx.Client) -> None:
    for body in ({}, {"spec": {}, "file": ""}):
        refused = rest.post("/plans", json=body).json()
        assert (refused["code"], refused["data"]["field"]) == ("invalid_argument", "spec")
