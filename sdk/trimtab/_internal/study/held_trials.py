"""Ask for trials: wait for the algorithm without polling, and keep the trials that the client holds."""

import math
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection import forks, retries
from trimtab._internal.connection.client_id import ClientId
from trimtab._internal.connection.transport import Transport
from trimtab._internal.logger import Logger
from trimtab._internal.messages.values import to_duration
from trimtab.errors import Conflict, OperationFailed, Timeout, TrimtabError

# How long the service holds a call before it answers that there is no result yet.
HOLD_SECONDS = 45.0
# A lease is renewed so many times before its end, so that some calls may fail.
RENEWALS_PER_LEASE = 4
# How long a trial waits for a process that has died.
LEASE_SECONDS = 60.0
# How long the thread that renews leases waits for the next trial.
LINGER_SECONDS = 30.0
# Other clients have used up the study while the suggestion was computed. The code is the one of a refused ask.
_REFUSALS = ("study_not_active", "budget_exhausted", "results_awaited")
_WORKING = (pb.OPERATION_STATE_PENDING, pb.OPERATION_STATE_RUNNING, pb.OPERATION_STATE_STALE)


logger = Logger("trimtab")


@dataclass(frozen=True)
class Answer:
    """The trials of an ask. `exhausted` is true if the space holds fewer configurations than were asked for."""

    trials: list[pb.Trial]
    exhausted: bool


class HeldTrials:
    """The trials that one client_id holds in one study. Thread-safe. A forked child holds none of its parent's.

    Each ask lists the ACTIVE trials that the client holds. The service first returns the client's other ACTIVE trials,
    because after a crash the client no longer knows them, and only then suggests new ones. Two asks therefore must not
    overlap: the second would get the trials of the first. A lock makes them wait for each other.

    A thread renews the leases of the held trials while there are any. It ends with the process, so the service gives
    the trials of a process that has died to another client.
    """

    def __init__(
        self,
        transport: Transport,
        study: str,
        study_uid: str,
        client_id: ClientId,
        held: Iterable[int] = (),
        lease: float | None = LEASE_SECONDS,
    ) -> None:
        """Create the object; `held` are the numbers of the trials that the client already holds.

        They are renewed for `lease` seconds at a time; None: they have no lease.
        """
        self.client_id = client_id
        self._transport = transport
        self._study = study
        self._study_uid = study_uid
        self._asking = threading.Lock()
        self._guard = threading.Lock()
        self._held: set[int] = set()
        # By number, the leases in seconds.
        self._leases: dict[int, float] = {}
        self._renewing = False
        self._changed = threading.Condition(self._guard)
        self._keep(list(held), lease)
        forks.follow(self)

    def after_fork(self) -> None:
        """Begin without trials and without the thread that renews leases."""
        self._asking = threading.Lock()
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)
        self._held.clear()
        self._leases.clear()
        self._renewing = False

    def ask(
        self,
        count: int,
        fixed: Mapping[str, pb.Value],
        timeout: float | None,
        lease: float | None,
        context: Mapping[str, pb.Value] | None = None,
    ) -> Answer:
        """Wait until the service has suggested `count` trials, at most `timeout` seconds, and return them.

        `lease` is in seconds; None: the trials wait for this client. `context` is the present one; None: the study
        chooses a context for each trial, if it has any.

        Raises:
            Timeout: the time is over. The next ask returns the trials that the service is still computing.
            OperationFailed: the algorithm failed. The message has its reason.
            Conflict: the study has ended, or its budget was used up, while the suggestion was computed.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        if not self._asking.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            raise Timeout(
                "ask_timeout",
                f"Another ask of client {self.client_id} in study {self._study} was still waiting after {timeout} s."
                " Ask again later, or use another client_id for each program.",
                retryable=True,
            )
        try:
            operation = self._finished(self._request(count, fixed, end, lease, context), end, timeout)
            self._keep([trial.number for trial in operation.trials], lease)
        finally:
            self._asking.release()
        return Answer(list(operation.trials), operation.space_exhausted)

    def release(self, number: int) -> None:
        """Forget a finished trial: the client no longer holds it."""
        with self._guard:
            self._held.discard(number)
            self._leases.pop(number, None)

    def _keep(self, numbers: list[int], lease: float | None) -> None:
        with self._guard:
            self._held.update(numbers)
            if lease is None or not numbers:
                return
            self._leases.update(dict.fromkeys(numbers, lease))
            self._changed.notify()
            if not self._renewing:
                self._renewing = True
                threading.Thread(target=self._renew, name="trimtab-renew", daemon=True).start()

    def _renew(self) -> None:
        """Renew the leases while there are any."""
        while True:
            with self._guard:
                if not self._changed.wait_for(lambda: self._leases, LINGER_SECONDS):
                    self._renewing = False
                    return
                lease = min(self._leases.values())
            time.sleep(lease / RENEWALS_PER_LEASE)
            with self._guard:
                numbers = sorted(self._leases)
            if not numbers:
                continue
            kept = self._renewed(numbers, lease)
            with self._guard:
                if kept is None:
                    self._leases.clear()
                    continue
                # Another process has told their results, or has been given them.
                for number in set(numbers).difference(kept):
                    self._leases.pop(number, None)
                    self._held.discard(number)

    def _renewed(self, numbers: list[int], lease: float) -> Iterable[int] | None:
        """Renew leases and return the trials that the client still has; None: they cannot be renewed any more."""
        request = pb.RenewTrialsRequest(
            study=self._study, client_id=str(self.client_id), trials=numbers, lease=to_duration("lease", lease)
        )
        until = time.monotonic() + lease / RENEWALS_PER_LEASE
        try:
            answer = self._transport.call(
                self._transport.stub.RenewTrials, request, until=until, study_uid=self._study_uid
            )
        except TrimtabError as error:
            if error.retryable:
                return numbers
            # An older service has no such call; or the study was deleted, or the client closed.
            logger.debug("the leases are not renewed any more", study=self._study, error=error)
            return None
        return answer.trials

    def _request(
        self,
        count: int,
        fixed: Mapping[str, pb.Value],
        end: float,
        lease: float | None,
        context: Mapping[str, pb.Value] | None,
    ) -> pb.Operation:
        with self._guard:
            held = sorted(self._held)
        hold = _hold(end)
        request = pb.SuggestTrialsRequest(
            study=self._study,
            count=count,
            client_id=str(self.client_id),
            held_trials=held,
            fixed=fixed,
            wait=to_duration("wait", hold),
            request_id=uuid.uuid4().hex,
            lease=None if lease is None else to_duration("lease", lease),
            context=context,
            schedule_context=context is None,
        )
        return self._transport.call(
            self._transport.stub.SuggestTrials, request, hold=hold, until=end, study_uid=self._study_uid
        )

    def _finished(self, operation: pb.Operation, end: float, timeout: float | None) -> pb.Operation:
        early = 0
        while operation.state in _WORKING:
            if time.monotonic() >= end:
                raise Timeout(
                    "ask_timeout",
                    f"Operation {operation.id} of study {self._study} was not done after {timeout} s. It continues:"
                    " ask again to get its trials.",
                    retryable=True,
                    data={"operation": operation.id},
                )
            hold, began = _hold(end), time.monotonic()
            request = pb.WaitOperationRequest(id=operation.id, wait=to_duration("wait", hold))
            operation = self._transport.call(self._transport.stub.WaitOperation, request, hold=hold, until=end)
            if operation.state in _WORKING and time.monotonic() - began < hold / 2:
                # A service that is about to stop releases the calls it holds. The pause avoids a tight loop.
                time.sleep(max(0.0, min(retries.pause(early), end - time.monotonic())))
                early += 1
        if operation.state != pb.OPERATION_STATE_SUCCEEDED:
            if operation.error_code in _REFUSALS:
                raise Conflict(operation.error_code, operation.error_message, data={"operation": operation.id})
            raise OperationFailed(
                operation.error_code or "operation_failed",
                f"The service could not suggest a trial: {operation.error_message or 'no reason given'}"
                f" (operation {operation.id}).",
                data={"operation": operation.id},
            )
        return operation


def _hold(end: float) -> float:
    return max(0.0, min(HOLD_SECONDS, end - time.monotonic()))
