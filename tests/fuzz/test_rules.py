"""The fuzzer notices what it is for, and makes the mutations that it promises."""

from __future__ import annotations

import json
import random
from typing import Any

import grpc
import httpx
import pytest

from service._gen import tuning_pb2
from tests.factories.grpc_service import spec
from tests.fuzz import grpc_requests, values
from tests.fuzz.answers import Answers
from tests.fuzz.fuzzer import Row, missing
from tests.fuzz.meter import Cost
from tests.fuzz.mutations import Kit, mutate
from tests.fuzz.world import SPECS

NUMBER = {"type": "object", "properties": {"n": {"type": "number", "nullable": True}}, "required": ["n"]}
DOCUMENTED = {"200": {"content": {"application/json": {"schema": NUMBER}}}, "204": {}}
PROBLEM = {"type": "t", "title": "t", "status": 400, "detail": "d", "code": "bad", "retryable": False, "data": {}}
ANSWERS = Answers({"components": {}}, {"bad"}, ["secret"])


def _rest(status: int, content: Any, kind: str = "application/json", sent: str = "") -> str:
    body = content if isinstance(content, str) else json.dumps(content)
    return ANSWERS.of_rest(
        httpx.Response(status, content=body.encode(), headers={"content-type": kind}), DOCUMENTED, sent
    ).problem


def test_good_answers_have_no_problem() -> None:
    assert _rest(200, {"n": 1}) == _rest(200, {"n": None}) == _rest(204, "", "") == ""
    assert _rest(400, PROBLEM, "application/problem+json") == ""


@pytest.mark.parametrize(
    ("status", "content", "kind", "problem"),
    [
        (500, PROBLEM, "application/problem+json", "status 500"),
        (404, "<h1>Not found</h1>", "text/html", "an HTML page"),
        (200, '{"n": NaN}', "application/json", "without valid JSON"),
        (200, '{"n": 1e999', "application/json", "without valid JSON"),
        (200, {"n": "1"}, "application/json", "differs from its schema"),
        (200, {"n": 1}, "text/plain", "content type"),
        (201, {"n": 1}, "application/json", "not documented"),
        (400, {"detail": "d"}, "application/problem+json", "without ['code'"),
        (400, PROBLEM, "application/json", "in place of a problem document"),
        (400, {**PROBLEM, "code": "new"}, "application/problem+json", "'new' is not one"),
        (200, {"n": 1, "m": "a secret"}, "application/json", "another tenant's 'secret'"),
    ],
)
def test_bad_answers_are_noticed(status: int, content: Any, kind: str, problem: str) -> None:
    assert problem in _rest(status, content, kind)


def test_an_echo_of_the_request_is_no_leak() -> None:
    assert _rest(200, {"n": 1, "m": "secret"}, sent="secret") == ""


def test_a_refusal_of_grpc_without_details_is_noticed() -> None:
    error = grpc.aio.AioRpcError(grpc.StatusCode.UNKNOWN, grpc.aio.Metadata(), grpc.aio.Metadata(), "boom")
    assert ANSWERS.of_error(error, "").problem == "no details: UNKNOWN boom"


def test_a_call_without_a_success_is_named() -> None:
    good, bad = Row("GET /a", "viewer"), Row("POST /b", "member")
    good.add(ANSWERS.of_grpc(tuning_pb2.Study(), ""), Cost(0.1, 5), "as it is", valid=True)
    bad.add(ANSWERS.of_grpc(tuning_pb2.Study(), ""), Cost(0.1, 5), "x", valid=False)
    (found,) = missing([good, bad])
    assert found.startswith("POST /b: no valid request has succeeded")


def test_the_sizes_are_those_of_the_limits() -> None:
    assert {63, 64, 65, 4095, 4096, 4097, 10_000, 10_001, 256 * 1024 + 1} <= set(values.sizes())


def test_the_same_seed_gives_the_same_mutations_and_all_kinds_occur() -> None:
    tree = {"path": {"name": "a"}, "query": {"x": "1"}, "body": {"name": "q", "spec": SPECS["whole"]}}
    before = json.dumps(tree)
    kit = Kit(20_000, ["theirs"])
    first, second = ([mutate(random.Random(seed), tree, kit)[0] for seed in range(2000)] for _ in range(2))
    assert first == second
    assert json.dumps(tree) == before
    done = " ".join(first)
    kinds = (
        "removed",
        "characters of",
        "entries",
        "more keys",
        "the value of",
        "of another tenant",
        "levels of",
        "inf",
    )
    assert [kind for kind in (*kinds, *values.PARAMETERS) if kind not in done] == []


def test_a_message_is_the_same_after_its_tree() -> None:
    for data in SPECS.values():
        message = grpc_requests.spec_message(data)
        assert grpc_requests.to_message(message.DESCRIPTOR, grpc_requests.to_tree(message)) == message


def test_what_a_message_cannot_hold_is_left_out() -> None:
    request = tuning_pb2.CreateStudyRequest(name="a", spec=spec())
    tree = grpc_requests.to_tree(request)
    tree |= {"load_if_exists": "no", "unknown": 1, "request_id": "\ud800"}
    assert grpc_requests.to_message(request.DESCRIPTOR, tree) == request


def test_what_protobuf_refuses_is_left_out() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    tree = {"name": "a", "spec": {"seed": 10**30, "algorithm": {"name": "gp", "options": deep}}}
    made = grpc_requests.to_message(tuning_pb2.CreateStudyRequest.DESCRIPTOR, tree)
    assert (made.name, made.spec.seed) == ("a", 0)


def test_structures_fit_messages() -> None:
    for make in grpc_requests.STRUCTURES["space"].values():
        made = grpc_requests.to_message(tuning_pb2.StudySpec.DESCRIPTOR, {"space": make()})
        assert len(made.space) == len(make())
