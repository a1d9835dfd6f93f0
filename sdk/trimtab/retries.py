"""Which failed calls are sent again, and when."""

import random
from dataclasses import dataclass

import grpc


@dataclass(frozen=True)
class Rule:
    """A call that ended with `status`, and with `text` in its message, is sent again."""

    status: grpc.StatusCode
    text: str = ""


# Every call may be sent twice: those that create something carry a request_id, the others change nothing the second
# time. So the question is never whether a repetition does harm, only whether it can help.
RULES = (
    # The service is not there, is being restarted, or cannot reach its database.
    Rule(grpc.StatusCode.UNAVAILABLE),
    # A server that stops cancels the calls it still holds. This side cancels no call that it waits for.
    Rule(grpc.StatusCode.CANCELLED),
    # The attempt's own deadline, well beyond any time the service takes: the answer, or the machine, is lost.
    Rule(grpc.StatusCode.DEADLINE_EXCEEDED),
    # Connections cut in the middle of an answer come under these, told apart by gRPC's own words only.
    Rule(grpc.StatusCode.INTERNAL, "RST_STREAM"),
    Rule(grpc.StatusCode.INTERNAL, "GOAWAY"),
    Rule(grpc.StatusCode.UNKNOWN, "Stream removed"),
    Rule(grpc.StatusCode.UNKNOWN, "Connection reset"),
)
# All else is sent again only if the service itself says so (ErrorDetail.retryable): bad input does not become good.

FIRST_PAUSE_SECONDS = 0.1
# A restarted service is found this soon, at the latest.
LONGEST_PAUSE_SECONDS = 2.0


def worth_it(status: grpc.StatusCode, text: str, retryable: bool) -> bool:
    """Whether a call that ended so is to be sent again; `retryable` is what the service said."""
    return retryable or any(rule.status is status and rule.text in text for rule in RULES)


def pause(attempt: int) -> float:
    """Seconds to wait after the failure of attempt number `attempt`, counted from 0.

    Exponential, with jitter, so that clients that lost the service together do not come back together.
    """
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(attempt, 16))
    return random.uniform(longest / 2, longest)
