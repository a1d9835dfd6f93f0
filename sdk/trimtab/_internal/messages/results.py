"""Conversion of the results of a study from messages."""

from collections.abc import Sequence

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.fields import from_message
from trimtab._internal.messages.values import from_params, from_value, from_values
from trimtab.context import ContextRow, ContextTable
from trimtab.method import (
    Compared,
    Effects,
    ObjectiveGain,
    ParameterEffect,
    ParetoMember,
    ParetoVerdict,
    PenaltyAdvice,
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
    """Return the verdict on a study."""
    effects = _from_effects(message.effects) if message.HasField("effects") else None
    compared = from_message(Compared, message.compared) if message.HasField("compared") else None
    return from_message(Verdict, message, level=_level(message.level), effects=effects, compared=compared)


def from_pareto_verdict(message: pb.ParetoVerdict) -> ParetoVerdict:
    """Return the verdict on a study with several objectives."""
    members = tuple(
        from_message(ParetoMember, one, objectives=tuple(from_message(ObjectiveGain, gain) for gain in one.objectives))
        for one in message.members
    )
    return from_message(ParetoVerdict, message, level=_level(message.level), members=members)


def from_penalties(message: pb.PenaltyAdvice) -> PenaltyAdvice:
    """Return the advice to users of penalties."""
    return from_message(PenaltyAdvice, message, trials=tuple(message.trials))


def _level(number: pb.VerdictLevel.ValueType) -> VerdictLevel:
    """Return a level; that of a newer service counts as not yet known."""
    return _VERDICT_LEVELS.get(number, VerdictLevel.UNKNOWN)


def _from_effects(message: pb.Effects) -> Effects:
    smallest = from_message(SmallestConfiguration, message.smallest) if message.HasField("smallest") else None
    parameters = tuple(from_message(ParameterEffect, one, found=from_value(one.found)) for one in message.parameters)
    return from_message(Effects, message, parameters=parameters, smallest=smallest)


def from_recommendation(space: Sequence[Parameter], message: pb.Recommendation) -> Recommendation:
    """Return the recommended configuration, with its parameters in the order of the space."""
    return from_message(Recommendation, message, params=from_params(space, message.params))


def from_context_table(study: str, message: pb.GetBestTrialsResponse) -> ContextTable:
    """Return the table of recommendations of a study with a context; it has no rows for another study."""
    rows = [
        ContextRow(
            context=from_values(row.context),
            settings=from_values(row.settings),
            is_default=row.is_default,
            best=from_values(row.best) or None,
            verdict=from_verdict(row.verdict) if row.HasField("verdict") else None,
            default=from_values(row.default) or None,
        )
        for row in message.contexts
    ]
    return ContextTable(study, message.revision, tuple(rows))
