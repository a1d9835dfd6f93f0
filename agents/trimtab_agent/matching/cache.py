"""The last answers of the service, for the time that it is away."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from trimtab_agent.submissions import Job, Match


class Cache:
    """Answers by the job's signature. It holds at most `most` of them, each for `seconds`."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._answers: OrderedDict[tuple[object, ...], tuple[float, Sequence[Match]]] = OrderedDict()

    def put(self, job: Job, matches: Sequence[Match]) -> None:
        """Store an answer; the answer that was stored or used longest ago makes way."""
        self._answers[job.signature] = (self._clock(), matches)
        self._answers.move_to_end(job.signature)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)

    def get(self, job: Job) -> Sequence[Match]:
        """Return the stored answer; without one, no match."""
        stored_at, matches = self._answers.get(job.signature, (0.0, ()))
        if not matches:
            return ()
        if self._clock() - stored_at > self._seconds:
            del self._answers[job.signature]
            return ()
        self._answers.move_to_end(job.signature)
        return matches
