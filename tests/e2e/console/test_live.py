"""The page on live systems, with an agent that the test plays: approval, pairs, guards, and the red button."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from playwright.sync_api import Page, Route, expect

from service._gen import agent_pb2, agent_pb2_grpc, tuning_pb2
from tests.factories.browser import NEEDS_BROWSER
from tests.factories.console import Rest
from tests.factories.grpc_service import WithToken, value
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService

pytestmark = NEEDS_BROWSER
AGENT = STUDY = COMPONENT = "live-cache"
Settle = agent_pb2.SettleLeaseRequest


class Played:
    """An agent with one instance of a live system."""

    def __init__(self, stub: agent_pb2_grpc.AgentServiceStub) -> None:
        self.stub = stub
        size = tuning_pb2.Parameter(
            name="size", integer=tuning_pb2.Parameter.IntRange(min=1, max=64, log=True), default=value(8)
        )
        guard = agent_pb2.LiveGuard(name="slow", metric="latency", above=20, for_seconds=5)
        live = agent_pb2.LiveComponent(guards=[guard], warm_up=1, block=2)
        offered = agent_pb2.Component(name=COMPONENT, digest="ab" * 32, applications=["one"], space=[size], live=live)
        stub.Register(
            agent_pb2.RegisterRequest(
                agent_id=AGENT, name=AGENT, version="1", slots=1, components=[offered], session_id=AGENT
            ),
            timeout=PATIENCE,
        )

    def lease(self) -> agent_pb2.Lease:
        """Return the next lease."""

        def acquire() -> agent_pb2.Lease | None:
            request = agent_pb2.AcquireLeasesRequest(agent_id=AGENT, count=1)
            return next(iter(self.stub.AcquireLeases(request, timeout=PATIENCE).leases), None)

        found = wait_for(acquire)
        assert found is not None
        return found

    def report(self, state: str, lease: str, **more: Any) -> list[str]:
        """Report the instance; return the reasons why the old settings are wanted."""
        reading = tuning_pb2.LiveReading(name="slow", metric="latency", above=True, limit=20, value=9, seconds=5)
        seen = tuning_pb2.LiveInstance(
            component=COMPONENT, instance="one", state=state, lease=lease, guards=[reading], **more
        )
        request = agent_pb2.ReportLiveRequest(agent_id=AGENT, instances=[seen])
        return [one.reason for one in self.stub.ReportLive(request, timeout=PATIENCE).revert]


@pytest.fixture
def played(service: EmbeddedService) -> Iterator[Played]:
    with grpc.insecure_channel(service.grpc_address) as channel:
        yield Played(agent_pb2_grpc.AgentServiceStub(grpc.intercept_channel(channel, WithToken(service.token))))


def create(api: Rest, name: str) -> None:
    size = {"name": "size", "type": "int", "min": 1, "max": 64, "log": True, "default": 8}
    spec = {
        "space": {"parameters": [size]},
        "objectives": [{"metric": "latency", "goal": "minimize"}],
        "execution": {"component": COMPONENT, "parallelism": 1},
        "live": {"approve": {"first": 1}, "budget": {"slow": {"metric": "slow", "of": "all", "most": 0.1, "rate": 10}}},
    }
    api("POST", "/studies", {"name": name, "spec": spec})


def test_a_trial_is_approved_watched_and_taken_back(page: Page, api: Rest, played: Played) -> None:
    page.get_by_role("link", name="Live", exact=True).click()
    expect(page.get_by_text("No live studies yet")).to_be_visible()
    expect(page.get_by_role("link", name="Tune a live system")).to_have_attribute("href", "/docs/how-to/live.html")

    create(api, STUDY)
    page.reload()
    expect(page.get_by_role("heading", name="1 plan waits for an approval")).to_be_visible()
    expect(page.get_by_text("The first trial needs 1 administrator.")).to_be_visible()
    expect(page.get_by_text("0 of 86,400 slow lost today")).to_be_visible()
    page.get_by_role("button", name="Approve trial 1").click()
    expect(page.get_by_role("heading", name="Plans")).to_be_visible()

    lease = played.lease()
    looks = [
        tuning_pb2.LiveLook(at=1.0, value=-0.2, effect=-0.2),
        tuning_pb2.LiveLook(at=2.0, value=-0.21, effect=-0.2, low=-0.3, high=-0.1),
    ]
    in_force = {"size": value(16)}
    running = {"phase": "block", "left": 3, "candidate": True, "settings": in_force, "looks": looks, "pairs": 2}
    assert played.report("running", lease.id, **running) == []
    expect(page.get_by_text("candidate in force")).to_be_visible()
    expect(page.get_by_role("img", name="slow: 9, at most 20")).to_be_visible()
    shown = f"{100 * math.expm1(-0.2):.1f}".replace("-", "\N{MINUS SIGN}")
    expect(page.get_by_role("img", name=f"Change of latency in 2 pairs: {shown}")).to_be_visible()

    pair = tuning_pb2.LivePair(candidate=1.8, incumbent=2.0, load=10)
    result = tuning_pb2.LiveResult(
        decision="keep", pairs=[pair] * 8, effect=-0.2, low=-0.3, high=-0.1, kept=True, instances=["one"],
        incumbent={"size": value(8)},
    )  # fmt: skip
    settled = Settle(agent_id=AGENT, lease=lease.id, outcome=Settle.OUTCOME_COMPLETED, live=result)
    played.stub.SettleLease(settled, timeout=PATIENCE)
    kept = {"phase": "kept", "candidate": True, "settings": in_force}
    played.report("kept", lease.id, **kept)
    expect(page.get_by_text(f"Kept after trial 1, which showed {shown}")).to_be_visible()
    expect(page.get_by_text("(originally 8)")).to_be_visible()

    # Two keys are enough: Enter opens the question, Enter confirms.
    page.get_by_role("button", name="Stop and revert …").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Stop and revert")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The old settings were asked for")).to_be_visible()
    assert played.report("kept", lease.id, **kept) == ["administrator has stopped the study"]
    played.report("idle", "", settings={"size": value(8)}, reason="administrator has stopped the study")
    expect(page.get_by_text("original settings")).to_be_visible()
    expect(page.get_by_text("Settings of live-cache were taken back")).to_be_visible()
    page.goto(f"/studies/{STUDY}?tab=live")
    expect(page.get_by_text("The last kept ones were taken back: administrator has stopped")).to_be_visible()
    expect(page.get_by_role("navigation", name="Study").get_by_role("link", name="Live")).to_have_attribute(
        "aria-current", "page"
    )


def test_no_button_of_another_study_is_there_while_one_is_loaded(page: Page, api: Rest, played: Played) -> None:
    one, other = f"{STUDY}-one", f"{STUDY}-other"
    create(api, one)
    create(api, other)
    stop = page.get_by_role("button", name="Stop and revert …")
    page.goto(f"/live?study={one}")
    expect(stop).to_be_visible()
    held: list[Route] = []
    page.route(f"**/api/v1/live?study={other}", lambda route: held.append(route))
    page.get_by_role("main").get_by_role("link", name=other).first.click()
    expect(page.get_by_text("Loading the live study …")).to_be_visible()
    expect(stop).to_have_count(0)
    for request in held:
        request.continue_()
    page.unroute_all()
    expect(stop).to_be_visible()
    expect(page.get_by_role("heading", level=2, name=other)).to_be_visible()
