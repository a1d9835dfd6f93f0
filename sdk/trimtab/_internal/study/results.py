"""Calls about the results of a study: recommendation, verdicts, the table of contexts, prospects."""

import json
from collections.abc import Mapping
from threading import Thread
from time import monotonic, sleep

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection.forks import Guard
from trimtab._internal.logger import Logger
from trimtab._internal.messages.results import (
    from_context_table,
    from_pareto_verdict,
    from_penalties,
    from_recommendation,
    from_verdict,
)
from trimtab._internal.study.handle import StudyHandle
from trimtab.context import ContextRow, ContextTable
from trimtab.errors import Conflict, NotFound, Timeout, TrimtabError
from trimtab.insight import Insight, insight_from_json
from trimtab.method import ParetoVerdict, PenaltyAdvice, Recommendation, Verdict
from trimtab.trial import Trial

logger = Logger("trimtab")

# Between two looks at what a worker computes.
_POLL_SECONDS = 0.5


def verdict(study: StudyHandle) -> Verdict | None:
    """Return the verdict on a study with one objective; None without a result."""
    answer = _best(study)
    return from_verdict(answer.verdict) if answer.HasField("verdict") else None


def pareto_verdict(study: StudyHandle) -> ParetoVerdict | None:
    """Return the verdict on a study with several objectives; None before its final check is over."""
    answer = _best(study)
    return from_pareto_verdict(answer.pareto_verdict) if answer.HasField("pareto_verdict") else None


def penalties(study: StudyHandle) -> PenaltyAdvice | None:
    """Return how to report configurations that do not work; None if no value looks like a penalty."""
    answer = _best(study)
    return from_penalties(answer.penalties) if answer.HasField("penalties") else None


def recommendation(study: StudyHandle) -> Recommendation | None:
    """Return the recommended configuration; None with several objectives or without a result."""
    answer = _best(study)
    return from_recommendation(study.spec.space, answer.recommendation) if answer.HasField("recommendation") else None


def best_trials(study: StudyHandle) -> list[Trial]:
    """Return the best trial or the Pareto set."""
    return [study.to_trial(trial) for trial in _best(study).trials]


def best_trial(study: StudyHandle) -> Trial:
    """Return the best trial of a study with one objective and no context. Raises NotFound and Conflict."""
    objectives = study.spec.objectives
    if len(objectives) > 1:
        raise Conflict(
            "several_objectives",
            f"Study {study.name} has {len(objectives)} objectives, so it has no single best trial:"
            " use pareto_front() instead.",
        )
    if study.spec.context:
        raise Conflict(
            "several_contexts",
            f"The best configuration of study {study.name} depends on the context: use best(context) instead.",
        )
    best = best_trials(study)
    if not best:
        raise NotFound("no_completed_trial", f"Study {study.name} has no completed trial yet.")
    return best[0]


def advice(study: StudyHandle) -> str:
    """Return what to look at if all configurations gave the same result; "" for other studies."""
    return str(_best(study).advice)


def context_table(study: StudyHandle) -> ContextTable:
    """Return the recommendations by context."""
    return from_context_table(study.name, _best(study))


class KeptTable:
    """The table of a study with a context, which is kept in memory. Thread-safe."""

    def __init__(self, study: StudyHandle) -> None:
        self._study = study
        self._table: ContextTable | None = None
        self._read_at = 0.0
        self._guard = Guard()

    def lookup(self, context: Mapping[str, object], max_age: float) -> ContextRow:
        """Return the row of a context. A thread reads a table again that is older than `max_age` seconds."""
        with self._guard:
            table = self._table
            if table is None:
                table, self._read_at = context_table(self._study), monotonic()
                self._table = table
            elif monotonic() - self._read_at > max_age:
                # Set before the answer, so that one thread reads at a time and a service that is away is not pressed.
                self._read_at = monotonic()
                Thread(target=self._read, name="trimtab-table", daemon=True).start()
        return table.lookup(context)

    def _read(self) -> None:
        try:
            self._table = context_table(self._study)
        except TrimtabError as error:
            logger.warning("the table could not be read again", study=self._study.name, error=error)


def prospects(study: StudyHandle, timeout: float) -> dict[float, float]:
    """Wait for the probabilities of gains, and return them by gain."""
    end = monotonic() + timeout
    while True:
        answer = study.call(study.stub.GetProspects, pb.GetProspectsRequest(study=study.name))
        if not answer.computing:
            break
        if monotonic() > end:
            raise Timeout("prospects_not_computed", f"No worker has computed the prospects in {timeout:g} s.")
        sleep(_POLL_SECONDS)
    if answer.error:
        raise TrimtabError("prospects_failed", f"The prospects cannot be computed: {answer.error}")
    return {one.gain: one.probability for one in answer.prospects}


def insight(study: StudyHandle, timeout: float) -> Insight | None:
    """Wait for the insight, and return it; None if there are too few results."""
    end = monotonic() + timeout
    while True:
        answer = study.call(study.stub.GetInsight, pb.GetInsightRequest(study=study.name))
        if not answer.computing:
            break
        if monotonic() > end:
            raise Timeout("insight_not_computed", f"No worker has computed the insight in {timeout:g} s.")
        sleep(_POLL_SECONDS)
    if answer.error:
        raise TrimtabError("insight_failed", f"The insight cannot be computed: {answer.error}")
    data = json.loads(answer.json) if answer.json else None
    return None if data is None or not data["objectives"] else insight_from_json(answer.finished, data)


def _best(study: StudyHandle) -> pb.GetBestTrialsResponse:
    return study.call(study.stub.GetBestTrials, pb.GetBestTrialsRequest(study=study.name))
