"""Decide what is done with the records that resemble a job."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from trimtab_agent.errors import NotForJobsError
from trimtab_agent.matching.rendering import Settings, render
from trimtab_agent.matching.request import Request
from trimtab_agent.policy import Policy
from trimtab_agent.submissions import Considered, Decision, Explored, Match
from trimtab_components.errors import NotInComponentError, UnsuitableValueError
from trimtab_components.schema import Component

# The service's maximum characters of a reason.
LONGEST_REASON = 500


@dataclass
class Decided:
    """All decisions on a job, and what is added to it."""

    considered: list[Considered] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    preload: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    # The live study and its trial whose candidate is applied: study/trial.
    trial: str = ""

    def add(self, settings: Settings, left: frozenset[str]) -> None:
        """Add a record's settings, except for the variables in `left`."""
        self.environment |= {name: text for name, text in settings.environment.items() if name not in left}
        self.preload += [library for library in settings.preload if library not in self.preload]
        self.options |= dict(settings.options)

    @property
    def marks(self) -> list[str]:
        """The marks of the applied records in the job's comment."""
        found = [f"trimtab:{one.record}:{one.score:.2f}" for one in self.considered if one.decision is Decision.APPLIED]
        tried = [one for one in self.considered if one.decision is Decision.EXPLORED]
        return found + [f"trimtab:{one.record}:{one.score:.2f}:{self.trial}" for one in tried]

    @property
    def applied(self) -> str:
        """The record whose settings are applied and that resembles the job most; "" if none is."""
        return next((one.record for one in self.considered if one.decision is Decision.APPLIED), "")


def decide(
    matches: Sequence[Match],
    components: Mapping[str, Component],
    policy: Policy,
    request: Request,
    draw: Callable[[], float] = random.random,
) -> Decided:
    """Return the decisions on the matches of a job, best first.

    In a dry run the result holds the additions that would have been made. `draw` returns a number from 0 to 1 that
    decides whether the job is a control.
    """
    rules = policy.matching
    decided = Decided()
    decision, reason = Decision.APPLIED, ""
    if rules.mode != "apply":
        decision, reason = Decision.DRY_RUN, "The policy asks for a dry run (rule matching.mode)."
    elif draw() < rules.control_share:
        decision, reason = Decision.CONTROL, "The job runs with its own settings as a control."
    for match in sorted(matches, key=lambda one: -one.score):
        try:
            settings = _settings(match, components, policy)
            left = _check(settings, request, policy, decided)
        except (NotForJobsError, NotInComponentError, UnsuitableValueError) as error:
            refusal = str(error)[:LONGEST_REASON]
            decided.considered.append(Considered(match.record, match.score, Decision.REFUSED, refusal))
            continue
        decided.considered.append(Considered(match.record, match.score, decision, reason))
        if decision is not Decision.CONTROL:
            decided.add(settings, left)
    return decided


def try_candidate(
    explored: Explored,
    match: Match,
    matches: Sequence[Match],
    policy: Policy,
    parts: Mapping[str, Component],
    request: Request,
) -> Decided:
    """Return the decisions on a job that gets a candidate in place of the settings of `match`.

    Raises:
        NotForJobsError: the candidate cannot be applied to this job.
    """
    candidate = replace(match, params=explored.params)
    decided = decide([candidate if one is match else one for one in matches], parts, policy, request, lambda: 1.0)
    decided.trial = f"{explored.study}/{explored.trial}"
    for place, one in enumerate(decided.considered):
        if one.record != match.record:
            continue
        if one.decision is not Decision.APPLIED:
            raise NotForJobsError(one.reason)
        said = f"Trial {explored.trial} of live study {explored.study!r} tries other settings."
        decided.considered[place] = replace(one, decision=Decision.EXPLORED, reason=said)
    return decided


def _settings(match: Match, components: Mapping[str, Component], policy: Policy) -> Settings:
    component = components.get(match.component)
    use = policy.matching.use_of(match.component)
    if component is None or use is None:
        raise NotForJobsError(f"The policy allows no component {match.component!r} (rule matching.components).")
    if match.digest and match.digest != component.digest:
        raise NotForJobsError(
            f"Component {match.component!r} has digest {component.digest[:12]} here, but the record is of "
            f"{match.digest[:12]}."
        )
    return render(component, match.application, match.params, use)


def _check(settings: Settings, request: Request, policy: Policy, decided: Decided) -> frozenset[str]:
    """Return the variables that the submission sets itself and that no value depends on.

    Raises:
        NotForJobsError: the policy, the user's own values or another record forbid the settings.
    """
    for name in sorted(settings.variables):
        if policy.environment is not None and not any(fnmatchcase(name, one) for one in policy.environment):
            raise NotForJobsError(f"The policy does not allow the variable {name} (rule environment).")
        if name in decided.environment:
            raise NotForJobsError(f"Another record has set the variable {name}.")
    whole, set_in_export = request.exported
    if settings.variables and not whole:
        raise NotForJobsError("The job's own --export keeps the environment of the submission away.")
    if settings.preload and "LD_PRELOAD" in set_in_export:
        raise NotForJobsError("The job sets LD_PRELOAD itself by --export.")
    own = (request.present | set_in_export) & {*settings.environment}
    if tuned := sorted(own & settings.tuned):
        raise NotForJobsError(f"The job sets {', '.join(tuned)} itself.")
    for name, _ in settings.options:
        if not request.has_scheduler:
            raise NotForJobsError(f"The settings need the scheduler's option --{name}, and there is no scheduler.")
        if name not in policy.matching.options:
            raise NotForJobsError(f"The policy does not allow the option --{name} (rule matching.options).")
        if name in request.chosen:
            raise NotForJobsError(f"The job sets --{name} itself.")
        if name in decided.options:
            raise NotForJobsError(f"Another record has set the option --{name}.")
    return frozenset(own)
