"""Reports about trials: measurements, results, failures."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import IntegrityError

from service.core.errors import Conflict, InvalidInput, ResourceExhausted
from service.core.lifecycle import StudyState, TrialState
from service.core.metrics import checked
from service.core.reasons import Reason, data_of, joined, stored
from service.notices import notices
from service.studies import actions, selectors
from service.studies.change import Work, changing
from service.studies.models import Measurement, Study, Trial
from service.studies.specs import LONGEST_SECONDS, check_identifier
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert
from service.trials import drifting, ending, tuners
from service.trials.quotas import meter
from service.trials.topup import top_up

# A trial that a machine's fault has ended so many times is FAILED. In a round of a final check, which other trials wait
# for, one attempt less is made.
MOST_ATTEMPTS = 3
# The results of one call.
MOST_RESULTS = 1000
# The measurements of a trial that a user adds.
MOST_READINGS = 1000
# The metrics of one report, and the characters of a name.
MOST_METRICS, LONGEST_METRIC = 1000, 200
# For so many seconds a client keeps a trial about which it has reported after the end of its lease.
_REGAINED_SECONDS = 60.0
# A study on agents is paused after so many trials in a row with the same failure.
MOST_SAME_FAILURES = 10
_insert_measurements = Insert(Measurement)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Reported:
    """A trial after a report, and its study. `last`: the last measurement, if the trial goes on after a measurement."""

    study: Study
    trial: Trial
    last: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The measurement at a step of a trial that a user adds. `elapsed_seconds`: the trial's running time by then."""

    step: int
    metrics: Mapping[str, object]
    elapsed_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Result:
    """The meaning of final metrics: COMPLETED with finite values, or INFEASIBLE without values and with the reason."""

    state: TrialState
    metrics: dict[str, float] | None
    reason: str = ""


# The states of trials that a user adds.
_ADDED = (TrialState.COMPLETED, TrialState.INFEASIBLE, TrialState.FAILED, TrialState.PRUNED)


def add_trial(
    principal: Principal,
    study: str,
    *,
    params: Mapping[str, object],
    metrics: Mapping[str, object],
    state: str = TrialState.COMPLETED,
    reason: str = "",
    request_id: str = "",
    measurements: Sequence[Reading] = (),
) -> Reported:
    """Add a configuration that the user measured, or that did not work. It is not counted against the budget.

    `state`: COMPLETED, or without metrics INFEASIBLE (the configuration cannot work), FAILED (the machine's fault) or
    PRUNED (stopped early), for a reason. A needed metric that is not finite makes a COMPLETED trial INFEASIBLE, as in
    `complete_trial`. The last one of the `measurements` is the bound of a PRUNED trial.

    Raises InvalidInput, NotFound, Conflict (`study_not_active`), ResourceExhausted (`quota_exceeded`).
    """
    check_identifier("request_id", request_id, 100)
    if state not in _ADDED:
        raise InvalidInput("state", state, ", ".join(_ADDED))
    if state == TrialState.COMPLETED and reason:
        raise InvalidInput("reason", reason, "no reason for a COMPLETED trial")
    if state != TrialState.COMPLETED and metrics:
        raise InvalidInput("metrics", sorted(metrics), f"no metrics for a trial that is {state}")
    _check_readings(measurements)
    try:
        meter.room_for_trials(principal, 1, active=False)
        with changing(principal, study, "trial.add") as work:
            trial = _add(work, params, metrics, TrialState(state), reason, request_id, measurements)
            return Reported(work.study, trial)
    except (IntegrityError, Conflict, ResourceExhausted):
        # A request that is sent twice gets the first answer, even if the first used up the quota.
        before = selectors.find_trial(principal, study, request_id)
        if before is None:
            raise
        return Reported(before.study, before)


def _add(
    work: Work,
    params: Mapping[str, object],
    metrics: Mapping[str, object],
    state: TrialState,
    reason: str,
    request_id: str,
    readings: Sequence[Reading],
) -> Trial:
    study, space = work.study, work.spec.space
    if study.state not in (StudyState.ACTIVE, StudyState.PAUSED):
        raise Conflict("study_not_active", f"Study {study.name!r} is {study.state}: it takes no more trials.")
    configuration = space.validate(params)
    measured = [_measured(one.metrics, f"measurements[{place}].metrics") for place, one in enumerate(readings)]
    if state == TrialState.COMPLETED:
        result = _result(work, metrics)
    else:
        bound = measured[-1] if state == TrialState.PRUNED and measured else None
        result = _Result(state, bound, reason)
    completed = result.state == TrialState.COMPLETED
    (trial,) = actions.add_trials(
        work,
        [configuration],
        state=result.state,
        origin="added",
        metrics=result.metrics,
        reason=result.reason,
        request_id=request_id or None,
    )
    if readings:
        # Only the database knows the key of the new row.
        stored = actions.get_trial(work, trial.number)
        _insert_measurements(
            work.principal,
            [
                _measurement(work, stored, one.step, values, one.elapsed_seconds)
                for one, values in zip(readings, measured, strict=True)
            ],
        )
    study.added_count += 1
    study.default_done |= completed and space.has_explicit_default and configuration == space.default()
    work.target = f"trial/{trial.number}"
    drifting.look(work, [trial])
    return trial


def replace_params(principal: Principal, study: str, number: int, *, params: Mapping[str, object]) -> Reported:
    """Replace the configuration of an ACTIVE trial by the one that its client really measures.

    A program that chooses its parameters while it runs needs only some of the suggested values, or other ones. The same
    call again changes nothing. Raises InvalidInput, NotFound, Conflict (`trial_already_finished`, `trial_not_active`,
    `trial_runs_on_agent`, `trial_of_check`).
    """
    with changing(principal, study, "trial.replace_params", trial=number) as work:
        trial = actions.get_trial(work, number)
        configuration = work.spec.space.validate(params)
        if actions.configuration_key(work.study, configuration) != trial.key:
            _regain(work, trial)
            _expect_active(work.study, trial)
            _expect_client(work.study, trial)
            if trial.origin == "check":
                raise Conflict(
                    "trial_of_check",
                    f"Trial {number} of study {study!r} belongs to its final check, which compares configurations."
                    " Measure exactly its params, or stop it.",
                )
            actions.replace_configuration(work, trial, configuration)
        return Reported(work.study, trial)


def report_measurement(
    principal: Principal,
    study: str,
    number: int,
    *,
    step: int,
    metrics: Mapping[str, object],
    elapsed_seconds: float | None = None,
) -> Reported:
    """Report metric values at one step of an ACTIVE trial; they need not be all metrics of the study.

    The trial that comes back is PRUNED where a pruning policy has stopped it. `elapsed_seconds`: its own running time;
    by default the time since it was given out. Raises InvalidInput, NotFound, Conflict (`trial_already_finished`,
    `trial_not_active`, `step_already_reported`).
    """
    with changing(principal, study, "trial.report", detail={"step": step}, trial=number) as work:
        trial = actions.get_trial(work, number)
        _regain(work, trial)
        if measure(work, trial, step, metrics, elapsed_seconds):
            prune(work, trial, elapsed_seconds)
        if trial.state != TrialState.ACTIVE:
            return Reported(work.study, trial)
        last = access.rows(Measurement, principal).filter(trial_id=trial.pk).order_by("-step").first()
        return Reported(work.study, trial, last.metrics if last else None)


def complete_trial(principal: Principal, study: str, number: int, *, metrics: Mapping[str, object]) -> Reported:
    """Give an ACTIVE trial its final metrics. The same report again changes nothing.

    A NaN or infinite value of a metric that the study needs makes the trial INFEASIBLE. Other metrics are stored if
    they are finite.

    Raises InvalidInput, NotFound, Conflict (`trial_already_finished`, `trial_not_active`, `trial_runs_on_agent`).
    """
    with changing(principal, study, "trial.complete", trial=number) as work:
        trial = actions.get_trial(work, number)
        result = _result(work, metrics)
        if _complete(work, trial, result):
            work.detail = {"metrics": result.metrics or {}}
            _after_results(work, [trial])
        return Reported(work.study, trial)


def complete_trials(
    principal: Principal, study: str, results: Sequence[tuple[int, Mapping[str, object]]]
) -> list[Reported]:
    """Give ACTIVE trials, each a number with its final metrics, their results in one transaction: all or none.

    A result that was reported before changes nothing. Raises as `complete_trial` does; an InvalidInput names the place
    in `results`.
    """
    if not 1 <= len(results) <= MOST_RESULTS:
        raise InvalidInput("results", f"{len(results)} results", f"1 to {MOST_RESULTS}")
    places: dict[int, int] = {}
    for place, (number, _) in enumerate(results):
        if places.setdefault(number, place) != place:
            raise InvalidInput(f"results[{place}].trial", number, f"another trial than results[{places[number]}].trial")
    with changing(principal, study, "trial.complete", detail={"trials": len(results)}) as work:
        told = [_result(work, metrics, f"results[{place}].metrics") for place, (_, metrics) in enumerate(results)]
        trials = actions.get_trials(work, [number for number, _ in results])
        changed = [_complete(work, trial, own) for trial, own in zip(trials, told, strict=True)]
        if any(changed):
            _after_results(work, trials)
        return [Reported(work.study, trial) for trial in trials]


def _complete(work: Work, trial: Trial, result: _Result) -> bool:
    """End a client's trial with its result. Return False if it has this result already."""
    known = trial.metrics == result.metrics if result.state == TrialState.COMPLETED else trial.reason == result.reason
    if trial.state == result.state and known:
        return False
    _regain(work, trial)
    _expect_active(work.study, trial)
    _expect_client(work.study, trial)
    actions.step_trial(work, trial, result.state, metrics=result.metrics, reason=result.reason)
    return True


def _result(work: Work, metrics: Mapping[str, object], field: str = "metrics") -> _Result:
    """Return the meaning of the final metrics that a client tells.

    A result without a finite value of each metric that the study needs is no measurement. The trial is INFEASIBLE: as
    far as anybody knows, the configuration is at fault. Other metrics that are not finite are left out.

    Raises InvalidInput, which names the field.
    """
    _check_needed(work, metrics, field)
    endless = {one: value for one, value in metrics.items() if isinstance(value, float) and not math.isfinite(value)}
    measured = _measured({name: value for name, value in metrics.items() if name not in endless}, field)
    needed = [name for name in work.spec.problem.needed_metrics if name in endless]
    if not needed:
        return _Result(TrialState.COMPLETED, measured)
    reason = joined([_not_finite(name, endless[name]) for name in needed])
    return _Result(TrialState.INFEASIBLE, None, reason)


def _not_finite(metric: str, value: float) -> Reason:
    words = "NaN" if math.isnan(value) else "infinite" if value > 0 else "negative infinite"
    return Reason(f"The metric {metric} is {words}.", "metric_not_finite", metric=metric, value=words)


def _after_results(work: Work, trials: Sequence[Trial]) -> None:
    """Look for drift, end the search if these were its last results, and give agents the trials that they need."""
    drifting.look(work, trials)
    ending.after_result(work)
    top_up(work)


def fail_trial(principal: Principal, study: str, number: int, *, infeasible: bool, reason: str = "") -> Reported:
    """End an ACTIVE trial: the configuration cannot work (`infeasible`), or the machine failed it.

    Raises NotFound, Conflict (`trial_already_finished`, `trial_not_active`, `trial_runs_on_agent`).
    """
    state = TrialState.INFEASIBLE if infeasible else TrialState.FAILED
    detail = {"state": state, "reason": reason}
    with changing(principal, study, "trial.fail", detail=detail, trial=number) as work:
        trial = actions.get_trial(work, number)
        if trial.state != state or trial.reason != reason:
            _regain(work, trial)
            _expect_active(work.study, trial)
            _expect_client(work.study, trial)
            finish(work, trial, state, reason=reason)
        return Reported(work.study, trial)


def stop_trial(principal: Principal, study: str, number: int, *, reason: str = "") -> Reported:
    """End a trial early as PRUNED; its last measurement is kept as a bound. An agent that runs it is to cancel it.

    Raises NotFound, Conflict (`trial_already_finished`).
    """
    with changing(principal, study, "trial.stop", detail={"reason": reason}, trial=number) as work:
        trial = actions.get_trial(work, number)
        if trial.state != TrialState.PRUNED:
            _expect_unfinished(work.study, trial)
            work.stops_trials = trial.state == TrialState.ACTIVE
            _note_stopped_check(work, trial)
            last = access.rows(Measurement, principal).filter(trial_id=trial.pk).order_by("-step").first()
            finish(work, trial, TrialState.PRUNED, metrics=last.metrics if last else None, reason=reason)
        return Reported(work.study, trial)


def _note_stopped_check(work: Work, trial: Trial) -> None:
    """Count a run of a final check that a person stops, having perhaps seen its measurements, for its record."""
    study = work.study
    if trial.origin == "check" and study.final_check is not None:
        study.final_check = {**study.final_check, "stopped": study.final_check.get("stopped", 0) + 1}


def finish(
    work: Work,
    trial: Trial,
    state: TrialState,
    *,
    metrics: Mapping[str, float] | None = None,
    reason: str = "",
) -> None:
    """End a trial, end the search if this was its last trial, and give agents the trials that they need."""
    actions.step_trial(work, trial, state, metrics=metrics, reason=reason)
    drifting.look(work, [trial])
    ending.after_result(work)
    if work.study.component and state in (TrialState.FAILED, TrialState.INFEASIBLE):
        _pause_where_nothing_works(work, trial)
    top_up(work)


def _pause_where_nothing_works(work: Work, trial: Trial) -> None:
    """Pause a study whose latest trials all ended as this one did, because more would only use up its budget.

    A study that its user has resumed may have as many such trials again.
    """
    study, principal = work.study, work.principal
    if study.state != StudyState.ACTIVE:
        return
    finished = access.rows(Trial, principal).filter(study_id=study.pk, finished_at__isnull=False).order_by("-revision")
    count = 0
    for ended, reason in finished.values_list("state", "reason").iterator(chunk_size=MOST_SAME_FAILURES + 1):
        if ended != trial.state or _kind(reason) != _kind(trial.reason):
            break
        count += 1
    if count and count % MOST_SAME_FAILURES == 0:
        kind = _kind(trial.reason)
        text = (
            f"{count} trials in a row are {trial.state} for the same reason: {kind}"
            " Remove that cause, or exclude such configurations, and resume the study."
        )
        cause = data_of(trial.reason, trial.reason_data)
        reason = Reason(text, "failures_in_row", trials=count, state=str(trial.state), reason=kind, cause=cause)
        actions.step_study(work, StudyState.PAUSED, reason)
        notices.study_failed(work)


def _kind(reason: str) -> str:
    """Return what failures of the same kind have in common: the first line of the reason, without the output that
    follows, and without the part of files' paths that differs between leases."""
    return _UUID.sub("…", reason.partition("\n")[0])


def prune(work: Work, trial: Trial, seconds: float | None) -> bool:
    """Stop an ACTIVE trial if one of the study's pruning policies says so, and return whether one did.

    `seconds`: its own running time; None: the time since it began.
    """
    if not work.spec.pruning or trial.origin == "check":
        return False
    if seconds is None:
        if trial.started_at is None:
            return False
        seconds = (work.time - trial.started_at).total_seconds()
    with tuners.borrowed(work) as (learner, _):
        running = tuners.as_running(work, trial, seconds)
        reason = learner.tuner.prune(running)
        bound = None if reason is None else learner.tuner.bound(running)
    if reason is None:
        return False
    trial.seconds = seconds
    work.stops_trials = True
    finish(work, trial, TrialState.PRUNED, metrics=bound, reason=reason)
    return True


def try_again(work: Work, trial: Trial, reason: str, *, counted: bool = True) -> None:
    """Put an ACTIVE trial back for another agent or client, or end it as FAILED once its attempts are used up.

    `counted` is False where nothing went wrong: an agent gave the trial back without having run it.
    """
    most = MOST_ATTEMPTS if trial.round is None else MOST_ATTEMPTS - 1
    if work.study.state not in (StudyState.ACTIVE, StudyState.PAUSED) or (counted and trial.attempt >= most):
        finish(work, trial, TrialState.FAILED, reason=reason)
        return
    # The next run reports its steps again.
    access.rows(Measurement, work.principal).filter(trial_id=trial.pk).delete()
    trial.agent, trial.node, trial.seconds = "", "", None
    trial.attempt += int(counted)
    actions.step_trial(work, trial, TrialState.REQUESTED, reason=reason)


def refuse(work: Work, trial: Trial, reason: str) -> None:
    """Put an ACTIVE trial back that an agent's policy refuses, or end it as FAILED once its attempts are used up.

    No program has run, so that the trial does not count against the study's budget.
    """
    study = work.study
    if trial.attempt < MOST_ATTEMPTS and study.state in (StudyState.ACTIVE, StudyState.PAUSED):
        # Another agent may have another policy.
        try_again(work, trial, reason)
        return
    study.added_count += 1
    finish(work, trial, TrialState.FAILED, reason=reason)
    measured = access.rows(Trial, work.principal).filter(study_id=study.pk, state=TrialState.COMPLETED)
    if study.state == StudyState.ACTIVE and not measured.exists():
        kind = _kind(reason)
        text = f"The policy of an agent refuses the jobs: {kind} Change the policy or the study, and resume the study."
        cause = data_of(reason, stored(reason))
        actions.step_study(work, StudyState.PAUSED, Reason(text, "policy_refuses", reason=kind, cause=cause))
        notices.study_failed(work)


def measure(work: Work, trial: Trial, step: int, metrics: Mapping[str, object], elapsed_seconds: float | None) -> bool:
    """Keep a measurement of an ACTIVE trial. Return False when the same one is there already."""
    _check_reading(Reading(step, metrics, elapsed_seconds))
    measured = _measured(metrics)
    before = access.rows(Measurement, work.principal).filter(trial_id=trial.pk, step=step).first()
    if before is not None:
        if before.metrics == measured:
            return False
        raise Conflict(
            "step_already_reported",
            f"Step {step} of trial {trial.number} was reported with other values.",
            step=step,
            reported=before.metrics,
        )
    _expect_active(work.study, trial)
    access.add(work.principal, _measurement(work, trial, step, measured, elapsed_seconds))
    actions.touch_trial(work, trial)
    return True


def _measurement(
    work: Work, trial: Trial, step: int, metrics: Mapping[str, float], elapsed_seconds: float | None
) -> Measurement:
    return Measurement(
        trial=trial, step=step, metrics=dict(metrics), elapsed_seconds=elapsed_seconds, created_at=work.time
    )


def _check_readings(readings: Sequence[Reading]) -> None:
    """Raise InvalidInput unless there are at most MOST_READINGS, in the order of their steps, each step once."""
    if len(readings) > MOST_READINGS:
        raise InvalidInput("measurements", f"{len(readings)} measurements", f"at most {MOST_READINGS}")
    for place, one in enumerate(readings):
        _check_reading(one, f"measurements[{place}].")
        if place and one.step <= readings[place - 1].step:
            allowed = f"a step above {readings[place - 1].step}, because measurements are in the order of their steps"
            raise InvalidInput(f"measurements[{place}].step", one.step, allowed)


def _check_reading(given: Reading, above: str = "") -> None:
    """Raise InvalidInput, whose field begins with `above`, for a wrong step or time, or without any metric."""
    if given.step < 0 or given.step >= 2**63:
        raise InvalidInput(f"{above}step", given.step, "0 or more")
    seconds = given.elapsed_seconds
    if seconds is not None and not 0 <= seconds <= LONGEST_SECONDS:
        raise InvalidInput(f"{above}elapsed_seconds", seconds, f"a number of seconds from 0 to {LONGEST_SECONDS:g}")
    if not given.metrics:
        raise InvalidInput(f"{above}metrics", dict(given.metrics), "at least one metric")


def check_metrics(work: Work, metrics: Mapping[str, object], field: str = "metrics") -> dict[str, float]:
    """Return final metrics: finite numbers, which include all that the study needs.

    Raises InvalidInput, which names the field.
    """
    _check_needed(work, metrics, field)
    return _measured(metrics, field)


def _check_needed(work: Work, metrics: Mapping[str, object], field: str) -> None:
    problem = work.spec.problem
    for name in problem.needed_metrics:
        if name not in metrics:
            role = "an objective" if name in problem.metrics else "named by an outcome constraint"
            raise InvalidInput(f"{field}.{name}", None, f"a finite number: it is {role} of the study")


def _measured(metrics: Mapping[str, object], field: str = "metrics") -> dict[str, float]:
    """Return metrics as numbers within the bound of `core/metrics.py`. Raises InvalidInput."""
    if len(metrics) > MOST_METRICS:
        raise InvalidInput(field, f"{len(metrics)} metrics", f"at most {MOST_METRICS}")
    for name in metrics:
        if len(name) > LONGEST_METRIC:
            raise InvalidInput(field, name, f"names of at most {LONGEST_METRIC} characters")
    return {name: checked(f"{field}.{name}", value) for name, value in metrics.items()}


def _regain(work: Work, trial: Trial) -> None:
    """Give a trial back to the client that reports after the end of its lease, unless another client has it.

    A trial that nobody has had yet is in its first attempt.
    """
    if trial.state == TrialState.REQUESTED and trial.attempt > 1 and not work.study.component:
        actions.start_trials(work, [trial], client=actions.Client(trial.client_id, _REGAINED_SECONDS))


def _expect_unfinished(study: Study, trial: Trial) -> None:
    if trial.state not in actions.OPEN_STATES:
        raise Conflict(
            "trial_already_finished",
            f"Trial {trial.number} of study {study.name!r} is {trial.state} already; nothing was changed.",
            state=str(trial.state),
        )


def _expect_active(study: Study, trial: Trial) -> None:
    _expect_unfinished(study, trial)
    if trial.state != TrialState.ACTIVE:
        raise Conflict(
            "trial_not_active",
            f"Trial {trial.number} of study {study.name!r} is {trial.state}: it has not been started.",
            state=str(trial.state),
        )


def _expect_client(study: Study, trial: Trial) -> None:
    if study.component:
        raise Conflict(
            "trial_runs_on_agent",
            f"Trial {trial.number} of study {study.name!r} runs on agent {trial.agent!r}, which reports it."
            " Stop it to end it early.",
        )
