"""Asks for trials: waiting for the algorithm without polling, and knowing which trials are in hand."""

import math
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab import retries
from trimtab._gen import tuning_pb2 as pb
from trimtab.converters import to_duration
from trimtab.errors import OperationFailed, Timeout
from trimtab.transport import Transport

# How long the service is asked to hold a call before it answers that there is nothing yet.
HOLD_SECONDS = 45.0
_WORKING = (pb.OPERATION_STATE_PENDING, pb.OPERATION_STATE_RUNNING, pb.OPERATION_STATE_STALE)


@dataclass(frozen=True)
class Answer:
    """The trials got; `exhausted`: there are fewer than asked for because the space holds no more."""

    trials: list[pb.Trial]
    exhausted: bool


class Desk:
    """What one client_id works on in one study. Thread-safe.

    A client that asks tells which ACTIVE trials it has in hand, and gets its others back before new ones are
    suggested: after a crash those are all it had. So two asks must not overlap, or the second would get the first
    one's trials back; they queue here.
    """

    def __init__(self, transport: Transport, study: str, client_id: str, held: Iterable[int] = ()) -> None:
        """`held`: numbers of the trials that the client has in hand already."""
        self.client_id = client_id
        self._transport = transport
        self._study = study
        self._asking = threading.Lock()
        self._guard = threading.Lock()
        self._held = set(held)

    def ask(self, count: int, fixed: Mapping[str, pb.Value], timeout: float | None) -> Answer:
        """Waits until the service has suggested `count` trials, or for `timeout` seconds.

        Raises:
            Timeout: the time is over; what is being suggested comes with the next ask.
            OperationFailed: the algorithm failed, with its reason.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        if not self._asking.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            raise Timeout(
                "ask_timeout",
                f"Another ask of client {self.client_id} in study {self._study} was still waiting after {timeout} s.",
                retryable=True,
            )
        try:
            operation = self._finished(self._request(count, fixed, end), end, timeout)
            with self._guard:
                self._held.update(trial.number for trial in operation.trials)
        finally:
            self._asking.release()
        return Answer(list(operation.trials), operation.space_exhausted)

    def put_away(self, number: int) -> None:
        """The trial is finished: it is no longer in hand."""
        with self._guard:
            self._held.discard(number)

    def _request(self, count: int, fixed: Mapping[str, pb.Value], end: float) -> pb.Operation:
        with self._guard:
            held = sorted(self._held)
        hold = _hold(end)
        request = pb.SuggestTrialsRequest(
            study=self._study,
            count=count,
            client_id=self.client_id,
            held_trials=held,
            fixed=fixed,
            wait=to_duration("wait", hold),
            request_id=uuid.uuid4().hex,
        )
        return self._transport.call(self._transport.stub.SuggestTrials, request, hold=hold, until=end)

    def _finished(self, operation: pb.Operation, end: float, timeout: float | None) -> pb.Operation:
        early = 0
        while operation.state in _WORKING:
            if time.monotonic() >= end:
                raise Timeout(
                    "ask_timeout",
                    f"Operation {operation.id} of study {self._study} was not done after {timeout} s. It goes on: ask"
                    " again for its trials.",
                    retryable=True,
                    data={"operation": operation.id},
                )
            hold, began = _hold(end), time.monotonic()
            request = pb.WaitOperationRequest(id=operation.id, wait=to_duration("wait", hold))
            operation = self._transport.call(self._transport.stub.WaitOperation, request, hold=hold, until=end)
            if operation.state in _WORKING and time.monotonic() - began < hold / 2:
                # A service that is about to stop lets go of the calls it holds; it must not be asked in a tight loop.
                time.sleep(max(0.0, min(retries.pause(early), end - time.monotonic())))
                early += 1
        if operation.state != pb.OPERATION_STATE_SUCCEEDED:
            raise OperationFailed(
                operation.error_code or "operation_failed",
                f"No trial could be suggested: {operation.error_message or 'the service gives no reason'}"
                f" (operation {operation.id}).",
                data={"operation": operation.id},
            )
        return operation


def _hold(end: float) -> float:
    return max(0.0, min(HOLD_SECONDS, end - time.monotonic()))
