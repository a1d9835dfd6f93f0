"""The turns of tenants in one web process."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from service.api import turns
from service.api.turns import Turns
from service.core.errors import ResourceExhausted
from service.platform import deadlines
from tests.factories.patience import PATIENCE, wait_for


class Requests:
    """Requests that are held until they are let go."""

    def __init__(self, served: Turns) -> None:
        self.turns = served
        self.begun: list[int] = []
        self.waited: list[int] = []
        self.let_go = threading.Event()
        self.errors: list[BaseException] = []
        self.threads: list[threading.Thread] = []

    def start(self, number: int, tenant: int, caller: deadlines.Caller | None = None) -> None:
        def serve() -> None:
            deadlines.present.set(caller)
            try:
                with self.turns.taken(tenant, lambda: self.waited.append(number)):
                    self.begun.append(number)
                    assert self.let_go.wait(PATIENCE)
            except (deadlines.Unwanted, ResourceExhausted) as error:
                self.errors.append(error)

        thread = threading.Thread(target=serve)
        thread.start()
        self.threads.append(thread)

    def wait_for_arrivals(self, count: int) -> None:
        wait_for(lambda: len(self.begun) + len(self.waited) == count, "they have come")

    def finish(self) -> None:
        self.let_go.set()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def wait_for_waiting(served: Turns, count: int) -> None:
    wait_for(lambda: len(served._tenants[1].waiting) == count, "they wait")


def test_a_tenant_has_a_few_requests_at_a_time_and_another_is_served_meanwhile() -> None:
    requests = Requests(Turns(2))
    for number in range(5):
        requests.start(number, tenant=1)
        requests.wait_for_arrivals(number + 1)
    requests.start(9, tenant=2)
    wait_for(lambda: 9 in requests.begun, "the other tenant's is served")
    assert requests.begun == [0, 1, 9]
    assert requests.waited == [2, 3, 4]
    requests.finish()
    assert sorted(requests.begun) == [0, 1, 2, 3, 4, 9]
    assert not requests.turns._tenants, "nothing of them stays"


def test_turns_come_in_the_order_of_arrival() -> None:
    served, order = Turns(1), []
    first = ExitStack()
    first.enter_context(served.taken(1, lambda: None))
    threads = []
    for number in range(4):

        def serve(number: int = number) -> None:
            with served.taken(1, lambda: None):
                order.append(number)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        wait_for_waiting(served, number + 1)
    first.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert order == [0, 1, 2, 3]


def test_a_request_whose_caller_has_gone_does_not_get_a_turn() -> None:
    requests, caller = Requests(Turns(1)), deadlines.Caller()
    requests.start(0, tenant=1)
    wait_for(lambda: requests.begun == [0], "it is served")
    requests.start(1, tenant=1, caller=caller)
    wait_for(lambda: requests.waited == [1], "it waits")
    caller.leave()
    wait_for(lambda: bool(requests.errors), "it has ended")
    assert isinstance(requests.errors[0], deadlines.Unwanted)
    requests.start(2, tenant=1)
    requests.finish()
    assert requests.begun == [0, 2]


def test_too_many_requests_that_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_WAITING", 1)
    requests = Requests(Turns(1))
    for number in range(2):
        requests.start(number, tenant=1)
        requests.wait_for_arrivals(number + 1)
    requests.start(2, tenant=1)
    wait_for(lambda: bool(requests.errors), "it is refused")
    (error,) = requests.errors
    assert isinstance(error, ResourceExhausted)
    assert (error.code, error.retryable) == ("too_many_requests", True)
    requests.finish()


def test_a_request_waits_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_SECONDS", 1.0)
    requests = Requests(Turns(1))
    requests.start(0, tenant=1)
    wait_for(lambda: requests.begun == [0], "it is served")
    requests.start(1, tenant=1)
    wait_for(lambda: bool(requests.errors), "it is refused")
    requests.finish()
    assert (requests.begun, requests.turns._tenants) == ([0], {})


def test_a_fault_before_the_wait_costs_no_turn() -> None:
    served = Turns(1)
    first = ExitStack()
    first.enter_context(served.taken(1, lambda: None))

    def broken() -> None:
        raise RuntimeError("the pool is closed")

    with pytest.raises(RuntimeError), served.taken(1, broken):
        pass
    first.close()
    assert not served._tenants
