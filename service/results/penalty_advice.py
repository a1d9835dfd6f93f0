"""Advice to users who report a large number for a configuration that does not work."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from service.studies.models import Study

_REASON = "does not work"


@dataclass(frozen=True, slots=True)
class PenaltyAdvice:
    """The trials whose values look like penalties, and how to report such a trial as INFEASIBLE.

    `call` is the one of the SDK for an active trial, `command` the one of the command line. Both are empty if agents
    run the trials: then the exit code of the application says so.
    """

    trials: Sequence[int]
    text: str
    call: str = ""
    command: str = ""


def advice_on(study: Study, penalties: Sequence[int]) -> PenaltyAdvice | None:
    """Return the advice for a study in which these trials have penalties; None if there are none."""
    if not penalties:
        return None
    count = len(penalties)
    look = (
        "1 value looks like a penalty: report this trial as infeasible"
        if count == 1
        else f"{count} values look like penalties: report these trials as infeasible"
    )
    if study.application:
        return PenaltyAdvice(penalties, f"{look}, by an exit code other than 0 and without the metric.")
    text = (
        f"{look}. A function of `study.optimize` raises trimtab.Infeasible({_REASON!r}) in place of returning a value."
    )
    call = f"study.tell(trial, infeasible={_REASON!r})"
    command = f"trimtab trial fail {shlex.quote(study.name)} NUMBER --infeasible --reason {shlex.quote(_REASON)}"
    return PenaltyAdvice(penalties, text, call, command)
