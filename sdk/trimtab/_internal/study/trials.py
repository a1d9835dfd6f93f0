"""Calls about trials: ask, tell, report, stop, add, enqueue, read."""

import uuid
from collections.abc import Iterable, Mapping, Sequence

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.trials import to_trial_states
from trimtab._internal.messages.values import to_duration, to_float, to_int, to_params
from trimtab._internal.study.handle import StudyHandle
from trimtab.errors import InvalidInput
from trimtab.trial import Measurement, Metrics, Trial, TrialState

PAGE_SIZE = 1000


def ask(
    study: StudyHandle,
    n: int,
    *,
    fixed: Mapping[str, object] | None,
    timeout: float | None,
    lease: float | None,
    context: Mapping[str, object] | None,
    schedule_context: bool,
) -> list[Trial]:
    """Wait for trials to measure, and return them."""
    count = to_int("n", n)
    wanted = to_params("fixed", study.spec.space, fixed or {})
    seconds = None if lease is None else to_float("lease", lease)
    if schedule_context and context is not None:
        raise InvalidInput.of("schedule_context", True, "False together with a context")
    present = None if schedule_context else to_params("context", study.spec.space, context or {})
    answer = study.held.ask(count, wanted, timeout, seconds, present)
    study.exhausted = answer.exhausted
    return [study.to_trial(trial) for trial in answer.trials]


def tell(
    study: StudyHandle, trial: Trial | int, metrics: Metrics | None, infeasible: str | None, failed: str | None
) -> Trial:
    """End a trial with its result, and return it."""
    _check_one_result("tell", metrics, infeasible=infeasible, failed=failed)
    number = study.number_of(trial)
    if metrics is not None:
        complete = pb.CompleteTrialRequest(study=study.name, trial=number, metrics=study.to_metrics(metrics))
        answer = study.call(study.stub.CompleteTrial, complete)
    else:
        reason = _to_reason(failed if infeasible is None else infeasible)
        fail = pb.FailTrialRequest(study=study.name, trial=number, infeasible=infeasible is not None, reason=reason)
        answer = study.call(study.stub.FailTrial, fail)
    study.held.release(number)
    return study.to_trial(answer)


def tell_many(study: StudyHandle, results: Iterable[tuple[Trial | int, Metrics]]) -> list[Trial]:
    """End several trials with their metrics in one call, and return them."""
    told = [
        pb.CompleteTrialsRequest.Result(trial=study.number_of(trial), metrics=study.to_metrics(metrics))
        for trial, metrics in results
    ]
    answer = study.call(study.stub.CompleteTrials, pb.CompleteTrialsRequest(study=study.name, results=told))
    for one in told:
        study.held.release(one.trial)
    return [study.to_trial(trial) for trial in answer.trials]


def report(study: StudyHandle, trial: Trial | int, step: int, metrics: Metrics, elapsed: float | None) -> Trial:
    """Report the metrics of a running trial at a step, and return the trial."""
    measurement = _to_measurement(study, step, metrics, elapsed)
    request = pb.ReportMeasurementRequest(study=study.name, trial=study.number_of(trial), measurement=measurement)
    reported = study.to_trial(study.call(study.stub.ReportMeasurement, request))
    if reported.state.finished:
        study.held.release(reported.number)
    return reported


def replace_params(study: StudyHandle, trial: Trial | int, params: Mapping[str, object]) -> Trial:
    """Replace the configuration of a running trial, and return the trial."""
    request = pb.ReplaceParamsRequest(
        study=study.name, trial=study.number_of(trial), params=to_params("params", study.spec.space, params)
    )
    return study.to_trial(study.call(study.stub.ReplaceParams, request))


def stop(study: StudyHandle, trial: Trial | int, reason: str) -> Trial:
    """Stop a running trial, and return it."""
    number = study.number_of(trial)
    stopped = study.call(study.stub.StopTrial, pb.StopTrialRequest(study=study.name, trial=number, reason=reason))
    study.held.release(number)
    return study.to_trial(stopped)


def add(
    study: StudyHandle,
    params: Mapping[str, object],
    metrics: Metrics | None,
    infeasible: str | None,
    failed: str | None,
    pruned: str | None,
    measurements: Iterable[Measurement],
    request_id: str | None,
) -> Trial:
    """Add a configuration that the caller has run, and return it as a trial."""
    _check_one_result("add_trial", metrics, infeasible=infeasible, failed=failed, pruned=pruned)
    request = pb.AddTrialRequest(
        study=study.name,
        params=to_params("params", study.spec.space, params),
        request_id=request_id or uuid.uuid4().hex,
    )
    if metrics is not None:
        request.metrics.update(study.to_metrics(metrics))
    for given, state in (
        (infeasible, pb.TRIAL_STATE_INFEASIBLE),
        (failed, pb.TRIAL_STATE_FAILED),
        (pruned, pb.TRIAL_STATE_PRUNED),
    ):
        if given is not None:
            request.state, request.reason = state, _to_reason(given)
    for one in sorted(measurements, key=lambda one: one.step):
        request.measurements.append(_to_measurement(study, one.step, one.metrics, one.elapsed))
    return study.to_trial(study.call(study.stub.AddTrial, request))


def enqueue(study: StudyHandle, params: Mapping[str, object], count: int, request_id: str | None) -> list[Trial]:
    """Have a configuration measured next, and return its trials."""
    request = pb.EnqueueTrialsRequest(
        study=study.name,
        params=to_params("params", study.spec.space, params),
        count=to_int("count", count),
        request_id=request_id or uuid.uuid4().hex,
    )
    return [study.to_trial(trial) for trial in study.call(study.stub.EnqueueTrials, request).trials]


def read_all(study: StudyHandle, states: Sequence[TrialState | str]) -> list[Trial]:
    """Return the trials in these states, or in any, by number."""
    request = pb.ListTrialsRequest(study=study.name, page_size=PAGE_SIZE, states=to_trial_states(states))
    found: list[Trial] = []
    while True:
        page = study.call(study.stub.ListTrials, request)
        found.extend(study.to_trial(trial) for trial in page.trials)
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def read(study: StudyHandle, number: int) -> Trial:
    """Return one trial with its measurements and the end of its log."""
    request = pb.GetTrialRequest(study=study.name, trial=study.number_of(number))
    return study.to_trial(study.call(study.stub.GetTrial, request))


def _check_one_result(method: str, metrics: object, **reasons: object) -> None:
    if sum(item is not None for item in (metrics, *reasons.values())) != 1:
        *names, last = ["metrics", *(f"{name}=REASON" for name in reasons)]
        raise InvalidInput("invalid_argument", f"{method} takes exactly one of {', '.join(names)} and {last}.")


def _to_reason(reason: object) -> str:
    if not isinstance(reason, str):
        raise InvalidInput.of("reason", reason, "a string that gives the reason")
    return reason


def _to_measurement(study: StudyHandle, step: int, metrics: Metrics, elapsed: float | None) -> pb.Measurement:
    measurement = pb.Measurement(step=to_int("step", step), metrics=study.to_metrics(metrics))
    if elapsed is not None:
        measurement.elapsed.CopyFrom(to_duration("elapsed", elapsed))
    return measurement
