"""The trials on which a verdict rests: the conditions under which its numbers hold, and whether others may use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.core.reasons import Reason, joined
from service.core.space import Configuration
from service.matching.records import Proof
from service.policies.check import word_for
from service.policies.stability import Assessment
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tuner.stable import conditions_of
from service.tuner.verdict import Finding, Level, Verdict

_CPU_TIME = Reason(
    "CPU time is less affected by other processes than wall time: give the metric the type cpu_time in the component"
    " file.",
    "cpu_time",
)


@dataclass(frozen=True, slots=True)
class Run:
    """The columns of a measured trial that matter for a verdict."""

    number: int
    origin: str
    metrics: Mapping[str, float] | None
    agent: str
    machine: str
    interference: Mapping[str, Any] | None
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Grounds:
    """The grounds of a verdict: the trials of the recommended configuration and of the default.

    `conditions` hold for the numbers, in addition to those of the load. `by_agents`: agents have measured all of them.
    `machines` are the different kinds of machines, where an unknown one is an empty text. `edited`: a run had other
    values than the configuration, and counts by an edit of the space alone. `stopped`: so many runs of the final check
    were stopped by people, who may have seen their measurements. `advice` is for a verdict that other processes have
    disturbed.
    """

    conditions: tuple[Reason, ...] = ()
    by_agents: bool = False
    machines: tuple[str, ...] = ()
    edited: bool = False
    stopped: int = 0
    advice: str = ""

    def of(self, verdict: Verdict) -> Verdict:
        """Return the verdict with these conditions, and the advice if it was disturbed."""
        advice = self.advice if verdict.disturbed_rounds else ""
        return replace(verdict, conditions=(*verdict.conditions, *self.conditions), advice=advice)

    def proof(self, verdict: Verdict | None) -> Proof | None:
        """Return the gain that a verdict proves for the jobs of other people, or that an administrator may approve.

        The verdict has its conditions already. None: there is no such gain.
        """
        if verdict is None or verdict.gain is None or verdict.low is None or verdict.high is None:
            return None
        is_disturbed = verdict.level is Level.PROVISIONAL and verdict.code is Finding.DISTURBED
        if verdict.level is not Level.PROVEN and not is_disturbed:
            return None
        return Proof(
            verdict.configuration,
            verdict.gain,
            verdict.low,
            verdict.high,
            conditions=tuple(verdict.conditions),
            withheld=joined([*self._doubts(verdict)]),
        )

    def _doubts(self, verdict: Verdict) -> Iterable[str]:
        """Return why jobs of other people do not get the settings by themselves."""
        disturbed, rounds = verdict.disturbed_rounds, verdict.rounds
        if disturbed:
            text = f"Other processes disturbed {disturbed} of {rounds} rounds of the final check."
            yield Reason(text, "record_disturbed", disturbed=disturbed, rounds=rounds)
        for one in verdict.conditions:
            if one.code == "injected":
                yield Reason(
                    f"The gain was measured under injected {one.values['text']}.", "record_injected", **one.values
                )
        if not self.by_agents:
            yield Reason("Not all of its runs were measured by agents.", "record_not_by_agents")
        if self.edited:
            yield Reason(
                "Its runs were made before an edit of the space, with other values than its own.", "record_edited"
            )
        if self.stopped:
            text = f"People have stopped {self.stopped} runs of the final check."
            yield Reason(text, "record_check_stopped", stopped=self.stopped)
        if len(self.machines) > 1:
            text = f"Its runs were measured on {len(self.machines)} kinds of machines."
            yield Reason(text, "record_on_several_machines", machines=len(self.machines))


def runs_of(principal: Principal, study: Study, numbers: Iterable[int]) -> dict[int, Run]:
    """Return the runs of the trials with these numbers, with one query."""
    rows = access.rows(Trial, principal).filter(study_id=study.pk, number__in=set(numbers))
    columns = ("number", "origin", "metrics", "agent", "machine", "interference", "params")
    return {row[0]: Run(*row) for row in rows.values_list(*columns)}


def grounds_of(
    study: Study,
    configuration: Configuration,
    runs: Sequence[int],
    default_runs: Sequence[int],
    among: Mapping[int, Run],
    assessed: Assessment | None = None,
) -> Grounds:
    """Return the grounds of a verdict on a configuration. `assessed`: of a study with `stability:`.

    `runs` and `default_runs` are the numbers of the trials that have measured it and the default. `among` has them, and
    may have more. After a final check only its trials count.
    """
    check = {**(study.final_check or {}), **(study.verdict or {})}
    found = [among[number] for number in sorted({*runs, *default_runs}) if number in among]
    if study.verdict is not None:
        checked = [one for one in found if one.origin == "check" and one.number > check.get("after", 0)]
        found = checked or found
    own = {*runs}
    measured = [one.metrics or {} for one in found if one.number in own]
    edited = bool(spec_of(study).edits) and any(
        dict(one.params) != dict(configuration) for one in found if one.number in own
    )
    conditions = [
        Reason(f"under injected {rule['text']}", "injected", text=rule["text"])
        for rule in study.injected or ()
        if not rule["parameter"] or configuration.get(rule["parameter"]) in rule["values"]
    ]
    problem, stability = spec_of(study).problem, spec_of(study).stability
    if assessed is not None and stability is not None:
        conditions += conditions_of(problem, assessed, stability, configuration)
    for constraint in problem.outcome_constraints:
        kept = sum(constraint not in problem.broken(metrics) for metrics in measured)
        text = f"keeps {constraint.text} in {kept} of {len(measured)} {'run' if len(measured) == 1 else 'runs'}"
        conditions.append(Reason(text, "limit", constraint=constraint.text, kept=kept, runs=len(measured)))
    machines = tuple(dict.fromkeys(one.machine for one in found))
    known = [machine for machine in machines if machine]
    if len(known) == 1:
        conditions.append(Reason(f"on {known[0]}", "machine", machine=known[0]))
    elif known:
        text = f"on {len(known)} kinds of machines: {'; '.join(known)}"
        conditions.append(Reason(text, "machines", machines=[*known]))
    objective = problem.objectives[0]
    unaffected = any(objective.metric in (one.interference or {}).get("unaffected", ()) for one in found)
    is_time = word_for(objective) == "faster" and not unaffected
    # A claim without a run of its own, or of the default, is measured by nobody.
    sides = ([one for one in found if one.number in numbers] for numbers in (own, {*default_runs}))
    by_agents = all(side and all(one.agent for one in side) for side in sides)
    return Grounds(
        tuple(conditions),
        by_agents,
        machines,
        edited=edited,
        stopped=check.get("stopped", 0),
        advice=_CPU_TIME if is_time and by_agents else "",
    )
