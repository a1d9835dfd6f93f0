"""Translate results of studies to messages: recommendations, verdicts, best settings."""

from collections.abc import Iterable
from dataclasses import asdict

from google.protobuf.message import Message

from service._gen import tuning_pb2
from service.fleet.components import Best
from service.results.analysis import Analysis
from service.results.penalty_advice import advice_on
from service.rpc.converters import GOALS, numbers_of, trial_message
from service.rpc.values import set_value, set_values
from service.studies.models import Study, Trial
from service.tuner.elimination import Effects
from service.tuner.verdict import ParetoVerdict, Verdict

VERDICT_LEVELS = numbers_of(tuning_pb2.VerdictLevel.DESCRIPTOR, lambda name: name.replace("_", " ").lower())


def best_message(study: Study, analysis: Analysis, trials: Iterable[Trial]) -> tuning_pb2.GetBestTrialsResponse:
    """Return the recommendation of a study and its best trials as a message."""
    message = tuning_pb2.GetBestTrialsResponse(trials=[trial_message(study, trial) for trial in trials])
    found = analysis.recommendation
    if found is not None:
        recommendation = message.recommendation
        recommendation.value = found.value
        recommendation.trials.extend(number for one in analysis.best for number in one.numbers)
        set_values(recommendation.params, found.configuration)
        if found.low is not None and found.high is not None:
            recommendation.low, recommendation.high = found.low, found.high
    if analysis.verdict is not None:
        message.verdict.CopyFrom(_verdict_message(analysis.verdict))
    if analysis.pareto_verdict is not None:
        message.pareto_verdict.CopyFrom(_pareto_verdict_message(analysis.pareto_verdict))
    message.revision, message.advice = analysis.revision, analysis.advice
    advice = advice_on(study, analysis.penalties)
    if advice is not None:
        message.penalties.CopyFrom(tuning_pb2.PenaltyAdvice(**asdict(advice)))
    for row in analysis.contexts:
        shown = message.contexts.add(is_default=row.is_default)
        set_values(shown.context, row.context)
        set_values(shown.settings, row.settings)
        set_values(shown.default, row.default)
        set_values(shown.best, {name: value for name, value in (row.found or {}).items() if name not in row.context})
        if row.verdict is not None:
            shown.verdict.CopyFrom(_verdict_message(row.verdict))
    return message


def _verdict_message(verdict: Verdict) -> tuning_pb2.Verdict:
    message = tuning_pb2.Verdict(
        text=verdict.text,
        level=VERDICT_LEVELS[verdict.level],
        value=verdict.value,
        runs=verdict.runs,
        default_runs=verdict.default_runs,
        trials=verdict.trials,
        measured=verdict.measured,
        doubtful=verdict.doubtful,
        code=verdict.code,
        conditions=verdict.conditions,
        rounds=verdict.rounds,
        disturbed_rounds=verdict.disturbed_rounds,
        advice=verdict.advice,
    )
    set_values(message.params, verdict.configuration)
    _set_known(message, verdict, "default", "gain", "low", "high")
    if verdict.compared is not None:
        set_values(message.compared.params, verdict.compared.configuration)
        message.compared.runs = verdict.compared.runs
        _set_known(message.compared, verdict.compared, "value", "gain", "low", "high")
    if verdict.effects is not None:
        message.effects.CopyFrom(_effects_message(verdict.effects))
    return message


def _pareto_verdict_message(verdict: ParetoVerdict) -> tuning_pb2.ParetoVerdict:
    message = tuning_pb2.ParetoVerdict(
        text=verdict.text,
        level=VERDICT_LEVELS[verdict.level],
        trials=verdict.trials,
        measured=verdict.measured,
        doubtful=verdict.doubtful,
        confidence=verdict.confidence,
        conditions=verdict.conditions,
    )
    _set_known(message, verdict, "gain", "low", "high")
    for one in verdict.members:
        member = message.members.add(runs=one.runs, broken=one.broken)
        set_values(member.params, one.params)
        for objective in one.objectives:
            gain = member.objectives.add(metric=objective.metric)
            _set_known(gain, objective, "value", "default", "gain", "low", "high")
    return message


def _set_known(message: Message, found: object, *names: str) -> None:
    """Set the fields of a message to the attributes that are not None."""
    for name in names:
        value = getattr(found, name)
        if value is not None:
            setattr(message, name, value)


def _effects_message(effects: Effects) -> tuning_pb2.Effects:
    message = tuning_pb2.Effects(text=effects.text, trials=effects.trials, tolerance=effects.tolerance)
    for one in effects.parameters:
        parameter = message.parameters.add(
            name=one.name, effect=one.effect, low=one.low, high=one.high, matters=one.matters, together=one.together
        )
        set_value(parameter.found, one.found)
        if one.default is not None:
            set_value(parameter.default, one.default)
    smallest = effects.smallest
    if smallest is not None:
        _set_known(message.smallest, smallest, "gain", "low", "high", "kept", "kept_low", "kept_high")
        set_values(message.smallest.params, smallest.params)
    return message


def best_settings_message(best: Best) -> tuning_pb2.BestSettings:
    """Return the best known settings of a component for one application as a message."""
    objective = best.objective
    # Summaries of earlier versions lack the level, the counts and the conditions.
    message = tuning_pb2.BestSettings(
        application=best.application,
        study=best.study,
        objective=tuning_pb2.Objective(
            metric=objective["metric"], goal=GOALS[objective["goal"]], unit=objective["unit"]
        ),
        digest=best.digest,
        machine=best.machine,
        elsewhere=best.elsewhere,
        verdict=tuning_pb2.Verdict(
            text=objective.get("text") or "",
            level=VERDICT_LEVELS.get(objective.get("level") or "", tuning_pb2.VERDICT_LEVEL_UNSPECIFIED),
            value=objective["best"],
            code=objective.get("code") or "",
            conditions=[one["text"] for one in objective.get("conditions") or ()],
            advice=objective.get("advice") or "",
        ),
    )
    verdict = message.verdict
    for name in ("runs", "default_runs", "trials", "measured", "doubtful", "rounds", "disturbed_rounds"):
        setattr(verdict, name, objective.get(name) or 0)
    for name in ("default", "gain", "low", "high"):
        if objective[name] is not None:
            setattr(verdict, name, objective[name])
    if compared := objective.get("compared"):
        set_values(verdict.compared.params, compared["configuration"])
        for name in ("value", "runs", "gain", "low", "high"):
            if compared[name] is not None:
                setattr(verdict.compared, name, compared[name])
    for target in (message.params, verdict.params):
        set_values(target, best.configuration)
    set_values(message.context, best.context)
    return message
