"""`trimtab live`: what is in force, approvals, and the red button, with an agent that the test plays."""

from __future__ import annotations

import json
from collections.abc import Iterator

import grpc
import pytest

import trimtab
from service._gen import agent_pb2, agent_pb2_grpc, tuning_pb2
from tests.factories.grpc_service import WithToken, value
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from tests.sdk.cli.shell import Shell
from trimtab._gen import tuning_pb2 as pb
from trimtab_components.pairs import commitment

Settle = agent_pb2.SettleLeaseRequest


@pytest.fixture
def agents(embedded_service: EmbeddedService) -> Iterator[agent_pb2_grpc.AgentServiceStub]:
    with grpc.insecure_channel(embedded_service.grpc_address) as channel:
        yield agent_pb2_grpc.AgentServiceStub(grpc.intercept_channel(channel, WithToken(embedded_service.token)))


@pytest.fixture
def agent(agents: agent_pb2_grpc.AgentServiceStub, component: str) -> str:
    """An agent with a live component."""
    size = tuning_pb2.Parameter(
        name="size", integer=tuning_pb2.Parameter.IntRange(min=1, max=64, log=True), default=value(8)
    )
    guard = agent_pb2.LiveGuard(name="slow", metric="latency", above_control=1.5, for_seconds=5)
    offered = agent_pb2.Component(
        name=component,
        digest="ab" * 32,
        applications=["one"],
        space=[size],
        live=agent_pb2.LiveComponent(guards=[guard], warm_up=1, block=2),
    )
    request = agent_pb2.RegisterRequest(
        agent_id=component, name=component, version="1", slots=1, components=[offered], session_id=component
    )
    agents.Register(request, timeout=PATIENCE)
    return component


def lease_of(agents: agent_pb2_grpc.AgentServiceStub, agent: str) -> agent_pb2.Lease:
    def acquire() -> agent_pb2.Lease | None:
        request = agent_pb2.AcquireLeasesRequest(agent_id=agent, count=1)
        return next(iter(agents.AcquireLeases(request, timeout=PATIENCE).leases), None)

    found = wait_for(acquire)
    assert found is not None
    return found


def test_a_plan_is_approved_its_settings_are_kept_and_the_study_is_stopped(
    shell: Shell,
    client: trimtab.Client,
    name: str,
    component: str,
    agent: str,
    agents: agent_pb2_grpc.AgentServiceStub,
) -> None:
    study = client.create_study(
        name,
        component=component,
        objectives=[trimtab.Minimize("latency")],
        live={"approve": "each", "budget": {"slow": {"metric": "slow", "of": "requests", "most": 0.1, "rate": 10}}},
    )
    assert study.spec.live is not None
    assert study.spec.live["approve"] == {"trials": "each"}
    wait_for(lambda: study.live_status().plans)
    shown = shell.succeed("live", "status", name)
    assert f"{name}: ACTIVE" in shown
    assert "not read yet, by default: size=8" in shown
    assert "size: 8 -> " in shown
    assert "waits until an administrator" in " ".join(shown.split())
    assert "PLANNED" in shown
    assert "has no trial 9" in shell.fail("live", "approve", name, "9")
    [plan] = json.loads(shell.succeed("live", "approve", name, "1", "--json"))["plans"]
    assert (plan["state"], plan["approved_by"]) == ("APPROVED", ["administrator"])

    lease = lease_of(agents, agent)
    told = lease.live
    assert (told.design, told.warm_up, told.block, told.objective) == ("switchback", 1, 2, "latency")
    pair = tuning_pb2.LivePair(candidate=1.8, incumbent=2.0, load=10)
    result = tuning_pb2.LiveResult(
        decision="keep", pairs=[pair] * 8, effect=-0.2, low=-0.3, high=-0.1, kept=True, instances=["one"],
        incumbent={"size": value(8)}, cost={"slow": 3.0},
    )  # fmt: skip
    settled = Settle(agent_id=agent, lease=lease.id, outcome=Settle.OUTCOME_COMPLETED, live=result)
    agents.SettleLease(settled, timeout=PATIENCE)
    found = json.loads(shell.succeed("live", "status", name, "--json"))
    [kept] = found["kept"]
    assert (kept["trial"], kept["pairs"], kept["in_force"], found["known"]) == (1, 8, True, True)
    assert (found["budgets"][0]["spent"], found["settled"], found["broken"]) == (3.0, 1, 0)
    assert "-18.1 % (-25.9 to -9.5)" in shell.succeed("live", "status", name)
    assert study.verdict is not None
    assert study.verdict.level == "proven"
    message = study._handle.call(study._handle.stub.GetTrial, pb.GetTrialRequest(study=name, trial=1))
    assert (message.live.seed, message.live.commitment) == (told.seed, commitment(told.seed))

    wait_for(lambda: study.live_status().plans)
    listed = json.loads(shell.succeed("live", "status", "--json"))
    [brief] = [one for one in listed["studies"] if one["study"] == name]
    assert (brief["state"], brief["component"], brief["waiting"], brief["running"]) == ("ACTIVE", component, 1, 0)
    assert [one for one in listed["instances"] if one["study"] == name] == []
    request = agent_pb2.ReportLiveRequest(
        agent_id=agent,
        instances=[
            tuning_pb2.LiveInstance(
                component=component, instance="one", state="kept", lease=lease.id, settings={"size": value(9)}
            )
        ],
    )
    agents.ReportLive(request, timeout=PATIENCE)
    [instance] = [one for one in client.list_live().instances if one.study == name]
    assert (instance.instance, instance.state, instance.trial, instance.settings) == ("one", "kept", 1, {"size": 9})
    shown = shell.succeed("live", "status")
    assert name in shown
    assert "size=9" in shown
    shell.succeed("live", "decline", name, "2", "--reason", "not now")
    wait_for(lambda: [one.trial for one in study.live_status().plans] == [3])
    stopped = shell.run("live", "stop", name, "--reason", "the site is slow")
    assert stopped.returncode == 0
    assert f"{name}: PAUSED, the site is slow" in stopped.stdout
    assert f"one: agent {component} puts the old settings back" in " ".join(stopped.stderr.split())
    assert study.stop_live().state == "PAUSED"


def test_other_studies_are_not_live(shell: Shell, study: trimtab.Study) -> None:
    assert "is not live" in shell.fail("live", "status", study.name)
