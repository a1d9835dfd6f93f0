"""Every REST operation and every gRPC method: valid requests succeed, and no mutation of them finds the service without
an answer, at another tenant's data, or at a cost that others would notice.

A short version runs with fixed seeds. `TRIMTAB_FUZZ_SECONDS` and `TRIMTAB_FUZZ_SEED` change the long one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from docs._ext.generated.errors import codes
from service._gen import agent_pb2, identity_pb2, matching_pb2, tuning_pb2
from service.rpc.server import SERVICES
from tests.fuzz import rest_requests
from tests.fuzz.answers import Answers
from tests.fuzz.calls import Call, GrpcCall, RestCall
from tests.fuzz.fuzzer import Fuzzer, missing
from tests.fuzz.world import World

METHODS = [
    method
    for file in (tuning_pb2, agent_pb2, identity_pb2, matching_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
SECONDS = float(os.environ.get("TRIMTAB_FUZZ_SECONDS", "300"))
SEED = int(os.environ.get("TRIMTAB_FUZZ_SEED", "1"))
RESULTS = Path(__file__).resolve().parents[2] / ".cache/fuzz"
# Of the short version: mutations of each call, and bytes of a request.
FEW, SMALL = 1, 20_000


def _calls(world: World, *, stable: bool) -> list[Call]:
    """Return all operations and methods. `stable`: error codes are compared with those of the documentation."""
    schema = world.rest("GET", "/schema")
    answers = Answers(schema, codes() if stable else (), world.furniture.secrets)
    return [
        *(RestCall(operation, answers) for operation in rest_requests.operations(schema)),
        *(GrpcCall(method, answers, world.plain) for method in METHODS),
    ]


def _expect_nothing_done_to_another_tenant(world: World) -> None:
    """Check that nobody has changed anything in the other tenant: its audit trail has no name of another one's."""
    done = world.execute(
        "SELECT action, target, actor FROM tenancy_auditentry AS entry JOIN tenancy_tenant AS tenant"
        " ON tenant.id = entry.tenant_id WHERE starts_with(tenant.slug, 'test-')"
        " AND entry.actor NOT IN ('tester', 'system') AND NOT starts_with(entry.actor, 'agent/victim')"
    )
    assert done == []


def _expect_no_findings(fuzzer: Fuzzer) -> None:
    fuzzer.finish()
    fuzzer.write(RESULTS)
    print(f"\n{fuzzer.summary()}\n\n{fuzzer.table()}")
    assert missing(fuzzer.rows.values()) == []
    assert [str(one) for one in fuzzer.findings.values()] == []
    _expect_nothing_done_to_another_tenant(fuzzer.world)


def test_the_list_of_methods_is_the_servers_own() -> None:
    assert {method.containing_service.full_name for method in METHODS} == set(SERVICES)


def test_every_call_succeeds_and_no_mutation_of_it_does_harm(world: World) -> None:
    fuzzer = Fuzzer(world, _calls(world, stable=False), seed=1, most=SMALL)
    fuzzer.run(FEW, until=lambda: True)
    _expect_no_findings(fuzzer)


@pytest.mark.slow("sends mutations for five minutes, the largest requests among them")
@pytest.mark.timeout(0)
def test_no_mutation_of_any_size_does_harm(full_world: World) -> None:
    fuzzer = Fuzzer(full_world, _calls(full_world, stable=True), SEED, most=4 * 1024 * 1024)
    end = time.monotonic() + SECONDS
    fuzzer.run(8, until=lambda: time.monotonic() > end)
    _expect_no_findings(fuzzer)
