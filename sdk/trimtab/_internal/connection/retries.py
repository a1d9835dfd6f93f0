"""The rules for sending failed calls again."""

import random
from dataclasses import dataclass

import grpc


@dataclass(frozen=True)
class Rule:
    """A call that failed with `status`, and with `text` in its message, is sent again."""

    status: grpc.StatusCode
    text: str = ""


# Every call may safely be sent twice: calls that create something carry a request_id, and a repetition of the others
# changes nothing. The rules only decide whether a repetition can help.
RULES = (
    # The service is stopped, restarts, or cannot reach its database.
    Rule(grpc.StatusCode.UNAVAILABLE),
    # A server that stops cancels the calls it holds. The client never cancels a call that it waits for.
    Rule(grpc.StatusCode.CANCELLED),
    # The deadline of an attempt is far beyond the service's response times: the answer or machine is lost.
    Rule(grpc.StatusCode.DEADLINE_EXCEEDED),
    # A connection that breaks during an answer gives these codes. Only gRPC's message identifies it.
    Rule(grpc.StatusCode.INTERNAL, "RST_STREAM"),
    Rule(grpc.StatusCode.INTERNAL, "GOAWAY"),
    Rule(grpc.StatusCode.UNKNOWN, "Stream removed"),
    Rule(grpc.StatusCode.UNKNOWN, "Connection reset"),
)
# Other errors are sent again only if the service says so (ErrorDetail.retryable).

FIRST_PAUSE_SECONDS = 0.1
# The client notices a restarted service within this time.
LONGEST_PAUSE_SECONDS = 2.0


def worth_it(status: grpc.StatusCode, text: str, retryable: bool) -> bool:
    """Return whether to send a failed call again. `retryable` is the service's own answer."""
    return retryable or any(rule.status is status and rule.text in text for rule in RULES)


def pause(attempt: int) -> float:
    """Return the seconds to wait after the failure of attempt number `attempt`, counted from 0.

    The pause grows exponentially and has jitter, so that clients do not all return at the same moment.
    """
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(attempt, 16))
    return random.uniform(longest / 2, longest)
