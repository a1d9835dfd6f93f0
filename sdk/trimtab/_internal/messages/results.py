"""Conversion of the results of a study from messages."""

from collections.abc import Sequence

from google.protobuf.message import Message

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.values import from_params, from_value, from_values
from trimtab.context import ContextRow, ContextTable
from trimtab.method import (
    Effects,
    ObjectiveGain,
    ParameterEffect,
    ParetoMember,
    ParetoVerdict,
    Recommendation,
    SmallestConfiguration,
    Verdict,
    VerdictLevel,
)
from trimtab.space import Parameter

_VERDICT_LEVELS = {
    pb.VerdictLevel.Value("VERDICT_LEVEL_" + level.upper().replace(" ", "_")): level for level in VerdictLevel
}


def from_verdict(message: pb.Verdict) -> Verdict:
    """Return the verdict on a study. A level of a newer service counts as not yet known."""
    return Verdict(
        text=message.text,
        level=_VERDICT_LEVELS.get(message.level, VerdictLevel.UNKNOWN),
        value=message.value,
        runs=message.runs,
        default=message.default if message.HasField("default") else None,
        default_runs=message.default_runs,
        gain=message.gain if message.HasField("gain") else None,
        low=message.low if message.HasField("low") else None,
        high=message.high if message.HasField("high") else None,
        trials=message.trials,
        measured=message.measured,
        doubtful=message.doubtful,
        effects=_from_effects(message.effects) if message.HasField("effects") else None,
    )


def from_pareto_verdict(message: pb.ParetoVerdict) -> ParetoVerdict:
    """Return the verdict on a study with several objectives."""
    return ParetoVerdict(
        text=message.text,
        level=_VERDICT_LEVELS.get(message.level, VerdictLevel.UNKNOWN),
        gain=_known(message, "gain"),
        low=_known(message, "low"),
        high=_known(message, "high"),
        trials=message.trials,
        members=tuple(
            ParetoMember(
                params={name: from_value(value) for name, value in sorted(one.params.items())},
                runs=one.runs,
                objectives=tuple(
                    ObjectiveGain(
                        gain.metric,
                        *(_known(gain, name) for name in ("value", "default", "gain", "low", "high")),
                    )
                    for gain in one.objectives
                ),
                broken=one.broken,
            )
            for one in message.members
        ),
        measured=message.measured,
        doubtful=message.doubtful,
        confidence=message.confidence,
    )


def _known(message: Message, name: str) -> float | None:
    """Return an optional number; None if it is absent."""
    return float(getattr(message, name)) if message.HasField(name) else None


def _from_effects(message: pb.Effects) -> Effects:
    parameters = tuple(
        ParameterEffect(
            name=one.name,
            default=from_value(one.default) if one.HasField("default") else None,
            found=from_value(one.found),
            effect=one.effect,
            low=one.low,
            high=one.high,
            matters=one.matters,
            together=tuple(one.together),
        )
        for one in message.parameters
    )
    smallest = None
    if message.HasField("smallest"):
        one = message.smallest
        smallest = SmallestConfiguration(
            params={name: from_value(value) for name, value in sorted(one.params.items())},
            gain=one.gain,
            low=one.low,
            high=one.high,
            kept=one.kept,
            kept_low=one.kept_low,
            kept_high=one.kept_high,
        )
    return Effects(message.text, message.trials, message.tolerance, parameters, smallest)


def from_recommendation(space: Sequence[Parameter], message: pb.Recommendation) -> Recommendation:
    """Return the recommended configuration, with its parameters in the order of the space."""
    interval = message.HasField("low") and message.HasField("high")
    return Recommendation(
        params=from_params(space, message.params),
        value=message.value,
        low=message.low if interval else None,
        high=message.high if interval else None,
        trials=tuple(message.trials),
    )


def from_context_table(study: str, message: pb.GetBestTrialsResponse) -> ContextTable:
    """Return the table of recommendations of a study with a context; it has no rows for another study."""
    rows = [
        ContextRow(
            context=from_values(row.context),
            settings=from_values(row.settings),
            is_default=row.is_default,
            best=from_values(row.best) if row.HasField("verdict") else None,
            verdict=from_verdict(row.verdict) if row.HasField("verdict") else None,
        )
        for row in message.contexts
    ]
    return ContextTable(study, message.revision, tuple(rows))
