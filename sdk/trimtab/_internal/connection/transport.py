"""Calls of the service. Only this file and channel.py use gRPC.

This one sends each call again as long as that can help (retries.py), and turns final failures into the errors of
errors.py.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar, cast

import grpc
from google.rpc import status_pb2

from trimtab import errors
from trimtab._gen import errordetails_pb2, identity_pb2_grpc, matching_pb2_grpc, tuning_pb2_grpc
from trimtab._internal.connection import forks, retries, tracing, trust
from trimtab._internal.connection.bearer import Bearer
from trimtab._internal.connection.channel import OPTIONS, Channel, Renewed
from trimtab._internal.connection.login import Login
from trimtab._internal.logger import Logger
from trimtab._internal.messages.structs import from_struct

if TYPE_CHECKING:
    from google.protobuf.message import Message

logger = Logger("trimtab")

Request = TypeVar("Request", bound="Message")
Answer = TypeVar("Answer", bound="Message")

# Seconds that one attempt may take beyond the time for which the service holds the call.
ATTEMPT_SECONDS = 30.0

# The metadata with the identity of the study that a call is about. The service refuses the call if another study has
# the name by now.
STUDY_UID_KEY = "trimtab-study-uid"

# By gRPC's convention the trailing metadata has the details of an error: a google.rpc.Status.
DETAILS_KEY = "grpc-status-details-bin"

# Error classes by gRPC status; other statuses give Internal.
KINDS: dict[grpc.StatusCode, type[errors.TrimtabError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidInput,
    grpc.StatusCode.OUT_OF_RANGE: errors.InvalidInput,
    grpc.StatusCode.NOT_FOUND: errors.NotFound,
    grpc.StatusCode.ALREADY_EXISTS: errors.AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: errors.Conflict,
    grpc.StatusCode.ABORTED: errors.Conflict,
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: errors.Forbidden,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: errors.Unavailable,
    grpc.StatusCode.CANCELLED: errors.Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.Unavailable,
}

# Parts of gRPC's message (status UNAVAILABLE) if the two sides do not agree on encryption, with our error codes.
HANDSHAKES = (
    ("WRONG_VERSION_NUMBER", "not_encrypted"),
    ("CERTIFICATE_VERIFY_FAILED", "untrusted_certificate"),
    ("Hostname Verification Check failed", "wrong_certificate"),
)
ADVICE = {
    "not_encrypted": "The server at {target} does not use TLS, or the port is not its gRPC port: check the address. If"
    " the service is not encrypted on purpose, use grpc://{target}, plaintext=True or --plaintext.",
    "untrusted_certificate": "The certificate of the service at {target} is not trusted ({why}). If your own authority"
    ' has signed it, pass the certificate of that authority: ca="FILE", TRIMTAB_TLS_CA=FILE or'
    " `trimtab login {address} --tls-ca FILE`.",
    "wrong_certificate": "The certificate of the service at {target} is for another name: use the address for which"
    " it was issued.",
}


class Transport:
    """A channel to one service, for one caller. Thread-safe. A forked child uses another channel.

    `retry_seconds` is how long, in seconds, a call is sent again after its first failure. If there is a `refusal`, each
    call raises it.
    """

    def __init__(self, login: Login, retry_seconds: float, refusal: errors.TrimtabError | None = None) -> None:
        self._refusal = refusal
        self.login = login
        self.address = login.address
        self.retry_seconds = retry_seconds
        self._before_close: list[Callable[[], None]] = []
        self._reached = False
        self._bearer = Bearer(login)
        target = login.address.target
        if login.address.secure:
            roots = trust.roots(login.ca)
            self._channel = Channel(
                lambda: grpc.secure_channel(target, grpc.ssl_channel_credentials(roots), options=OPTIONS)
            )
        else:
            self._channel = Channel(lambda: grpc.insecure_channel(target, options=OPTIONS))
        # The stubs only call the two methods that Channel has.
        channel = cast(grpc.Channel, self._channel)
        self.stub = tuning_pb2_grpc.TuningServiceStub(channel)
        self.identity = identity_pb2_grpc.IdentityServiceStub(channel)
        self.matching = matching_pb2_grpc.MatchingServiceStub(channel)
        forks.follow(self)

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._channel.closed

    def before_close(self, last: Callable[[], None]) -> None:
        """Call `last` before the connection is closed."""
        self._before_close.append(last)

    def close(self) -> None:
        """Close the connection and end the calls that are in progress."""
        while self._before_close:
            self._before_close.pop()()
        self._channel.close()

    def after_fork(self) -> None:
        """Forget what the parent does before it closes the connection."""
        self._before_close.clear()

    def call(
        self,
        method: "grpc.UnaryUnaryMultiCallable[Request, Answer]",
        request: Request,
        *,
        hold: float = 0.0,
        until: float = math.inf,
        study_uid: str = "",
    ) -> Answer:
        """Send `request`, again and unchanged if that can help, and return the answer.

        `hold` is how long, in seconds, the service may hold the call. `until` is a time of time.monotonic()
        after which the call is not sent again. `study_uid` is the identity of the study that the call is about.

        Raises:
            TrimtabError: the service refused the call, or did not answer in time (Unavailable).
        """
        patience = Patience(self.retry_seconds, until)
        renewals = 1
        while True:
            self._check_open()
            metadata = (*self._show(patience), *_about(study_uid))
            try:
                answer = method(request, timeout=hold + ATTEMPT_SECONDS, metadata=metadata)
                self._reached = True
                return answer
            except grpc.RpcError as error:
                if renewals and _refuses_caller(error) and self._bearer.renew():
                    renewals -= 1
                    continue
                self._bear(error, patience)

    def stream(
        self,
        method: "grpc.UnaryStreamMultiCallable[Request, Answer]",
        next_request: Callable[[], Request],
        *,
        until: float = math.inf,
        study_uid: str = "",
    ) -> Iterator[Answer]:
        """Yield the messages of a stream. If it breaks, open it again with the next request.

        It ends when the service ends the stream. `until` and `study_uid` are as in `call`.

        Raises:
            TrimtabError: as in `call`.
            Timeout: the stream was still open at `until`.
        """
        patience = Patience(self.retry_seconds, until)
        renewals = 1
        while True:
            self._check_open()
            left = until - time.monotonic()
            timeout = None if left == math.inf else left
            metadata = (*self._show(patience), *_about(study_uid))
            messages = method(next_request(), timeout=timeout, metadata=metadata)
            try:
                for message in messages:
                    patience = Patience(self.retry_seconds, until)
                    renewals = 1
                    self._reached = True
                    yield message
                return
            except Renewed:
                continue
            except grpc.RpcError as error:
                if time.monotonic() >= until:
                    raise errors.Timeout("watch_timeout", "The time limit for watching is over.") from None
                # A stream may last longer than the token that opened it.
                if renewals and _refuses_caller(error) and self._bearer.renew():
                    renewals -= 1
                    continue
                self._bear(error, patience)
            finally:
                messages.cancel()

    def _show(self, patience: "Patience") -> tuple[tuple[str, str], ...]:
        """Return the credentials and the trace for the next attempt; wait while the credentials cannot be renewed."""
        while True:
            try:
                return (*self._bearer.metadata(), *tracing.metadata())
            except errors.Unavailable:
                if not patience.sleep():
                    raise

    def _bear(self, error: grpc.RpcError, patience: "Patience") -> None:
        """Sleep if another attempt can help, else raise the error of the call."""
        status, text, detail = _read(error)
        failure = self._insecure(text) or _failure(status, text, detail)
        # A service that has answered before may be restarting.
        hopeless = isinstance(failure, errors.Insecure) and not self._reached
        if self.closed or hopeless or not retries.worth_it(status, text, failure.retryable):
            raise failure from None  # gRPC's own error repeats this at great length
        wait = failure.data.get("retry_after_seconds")
        if isinstance(wait, int | float):
            logger.warning("the service asks to wait, trying again", seconds=wait, error=text)
            if patience.sleep(wait):
                return
            raise failure from None
        if patience.sleep():
            if patience.attempts == 1:
                logger.warning(
                    "the service does not answer, trying again",
                    address=self.address,
                    seconds=self.retry_seconds,
                    error=text,
                )
            return
        if isinstance(failure, errors.Insecure):
            raise failure from None
        raise type(failure)(
            failure.code,
            f"The service at {self.address} did not answer for {patience.elapsed:.0f} s ({failure.message}):"
            " check that it is running and that this is its gRPC address (url, TRIMTAB_URL or trimtab login sets it)"
            + ("." if self.address.secure else f". If it uses TLS, use grpcs://{self.address.target}."),
            retryable=True,
            data=failure.data,
        ) from None

    def _insecure(self, text: str) -> errors.Insecure | None:
        for words, code in HANDSHAKES:
            if words in text:
                why = text.partition(f"{words}: ")[2].partition(":")[0]
                advice = ADVICE[code].format(address=self.address, target=self.address.target, why=why)
                return errors.Insecure(code, advice, retryable=True)
        return None

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise self._refusal
        self._channel.check_open()


class Patience:
    """The pauses between the attempts of one call and their time limit."""

    def __init__(self, seconds: float, until: float) -> None:
        self._seconds = seconds
        self._until = until
        self._since: float | None = None
        self.attempts = 0

    @property
    def elapsed(self) -> float:
        """Seconds since the first failure."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    def sleep(self, least: float = 0.0) -> bool:
        """Wait for the next attempt, at least `least` seconds; return False at once if no time is left."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        end = min(self._since + self._seconds, self._until)
        if now >= end or now + least > end:
            return False
        time.sleep(max(least, min(retries.pause(self.attempts), end - now)))
        self.attempts += 1
        return True


def _about(study_uid: str) -> tuple[tuple[str, str], ...]:
    return ((STUDY_UID_KEY, study_uid),) if study_uid else ()


def _refuses_caller(error: grpc.RpcError) -> bool:
    return isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.UNAUTHENTICATED


def _read(error: grpc.RpcError) -> tuple[grpc.StatusCode, str, errordetails_pb2.ErrorDetail | None]:
    if not isinstance(error, grpc.Call):
        return grpc.StatusCode.UNKNOWN, str(error), None
    status, text = error.code(), error.details() or ""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            for packed in status_pb2.Status.FromString(value).details:
                detail = errordetails_pb2.ErrorDetail()
                if packed.Unpack(detail):
                    return status, text, detail
    return status, text, None


def _failure(status: grpc.StatusCode, text: str, detail: errordetails_pb2.ErrorDetail | None) -> errors.TrimtabError:
    kind = KINDS.get(status, errors.Internal)
    if detail is None:
        return kind(status.name.lower(), text or status.name)
    data = from_struct(detail.data)
    return kind(detail.code, detail.message, retryable=detail.retryable, data=data, docs=detail.docs)
