"""Every REST operation, with requests that schemathesis makes from the OpenAPI schema: such as fit it, and such as do
not."""

import copy
from typing import Any

import requests
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.conftest import SPEC
from tests.factories.grpc_service import unique
from tests.fuzz.conftest import FUZZING, Prey

# Nobody is to wait longer than this for the beginning of any answer.
LONGEST_SECONDS = 20.0
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
FULL = {
    **SPEC,
    "constraints": ["x * 4 <= n"],
    "outcome_constraints": ["seconds <= 3"],
    "noisy": True,
    "budget": {"max_trials": 5, "max_seconds": 10.5},
    "algorithm": {"name": "gp", "options": {}},
    "resampling": {"name": "none"},
    "pruning": [{"name": "median"}],
    "stopping": {"rule": "plateau"},
    "final_check": {"width": 0.1, "max_trials": 10},
    "start_from": [],
    "description": "# Why",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([1e308, -1e308, 2**63, 10**400, "", "\0", "x", "n", "seconds"]) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


def known(prey: Prey) -> dict[str, Any]:
    """Return values for parameters of paths, of existing things."""
    return {
        "name": prey.study,
        "number": 2,
        "operation_id": prey.operation,
        "artifact_id": 1,
        "agent_id": prey.agent,
        "token_id": "trm_x",
        "slug": prey.tenant,
        "record_id": prey.record,
        "channel_id": prey.notice_channel,
    }


def test_no_request_finds_the_service_without_an_answer(prey: Prey) -> None:
    url = prey.service.http_url
    headers = {"Authorization": f"Bearer {prey.service.token}", "X-Trimtab-Console": "1"}
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/schema")
    operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    assert len(operations) == schema.statistic.operations.total > 25
    with requests.Session() as session:
        for operation in operations:
            prey.renew()
            parameters = {item.name for item in operation.path_parameters}
            there = {name: value for name, value in known(prey).items() if name in parameters}
            assert parameters == there.keys(), f"{operation.label}: what is there under {parameters}?"
            streams = operation.path.endswith("/events")
            positive, negative = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
            made = [operation.as_strategy(positive), operation.as_strategy(negative)]
            made += [operation.as_strategy(mode, path_parameters=there) for mode in (positive, negative) if there]

            def one(case: Any) -> None:
                send(session, headers, streams, case)  # noqa: B023 - called before the next turn

            FUZZING(given(st.one_of(*made))(one))()
    assert prey.mishaps() == ""


def send(session: requests.Session, headers: dict[str, str], streams: bool, case: Any) -> None:
    """Send one request; of a stream, read only the beginning."""
    words = case.as_transport_kwargs(headers=headers)
    try:
        answer = session.request(**words, timeout=LONGEST_SECONDS, stream=streams)
    except requests.exceptions.InvalidHeader:
        return  # a client that would send it is no client of HTTP
    try:
        if streams and answer.status_code == 200:
            return
        case.validate_response(answer, checks=CHECKS, headers=headers)
        if answer.status_code >= 400:
            assert answer.json()["code"], answer.text
    finally:
        answer.close()


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    """Generate a valid specification in which one value is replaced, removed or added."""
    whole: Any = {"spec": copy.deepcopy(draw(st.sampled_from([SPEC, FULL])))}
    place, key = whole, "spec"
    while isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 4)):
        place = place[key]
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    match draw(st.integers(0, 3)):
        case 0 if place is not whole:
            del place[key]
        case 1 if isinstance(place, dict) and place is not whole:
            place[draw(st.text(max_size=5))] = draw(JSON)
        case _:
            place[key] = draw(JSON)
    return whole["spec"]


def test_no_study_that_was_taken_is_without_an_answer_later(prey: Prey) -> None:
    url = f"{prey.service.http_url}/api/v1/studies"
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {prey.service.token}"

        @FUZZING
        @given(spoilt())
        def create_and_use(spec: Any) -> None:
            name = unique()
            answer = session.post(url, json={"name": name, "spec": spec}, timeout=LONGEST_SECONDS)
            assert answer.status_code < 500, answer.text
            if answer.status_code == 201:
                used = [
                    session.post(f"{url}/{name}/suggestions", json={"count": 2}, timeout=LONGEST_SECONDS),
                    *(session.get(f"{url}/{name}/{path}", timeout=LONGEST_SECONDS) for path in ("best", "analysis")),
                    session.get(f"{url}/{name}", timeout=LONGEST_SECONDS),
                ]
                for later in used:
                    assert later.status_code < 500, (later.url, later.text)

        create_and_use()
    assert prey.mishaps() == ""
