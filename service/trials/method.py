"""The method of a study: its spec in the form that tuners take, and checks that need algorithms and policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from service.algorithms import registry
from service.algorithms.base import Cost
from service.core.errors import InvalidInput, JsonValue
from service.core.stability import Stability
from service.policies import stopping
from service.policies.check import FinalCheck
from service.studies.live_spec import Live
from service.studies.models import Study
from service.studies.specs import Choice, Policy, StudySpec, budget_of, spec_of
from service.tuner.contextual import tuner_for
from service.tuner.method import LiveRules, Method
from service.tuner.tuner import Tuner

_REMEMBERED = 512


def completed(spec: StudySpec) -> StudySpec:
    """Return the spec with all options of algorithm and policies, and with the algorithm that `auto` chooses.

    Raises InvalidInput with the field at fault: an unknown name or option, an algorithm that is not installed, a value
    out of range, a policy that the study cannot have.
    """
    check = spec.final_check
    if check is not None:
        check = parse_check(spec, check).to_json()
        expect_checkable(spec, check)
    if spec.stability is not None:
        expect_nodes(spec, spec.stability)
    method = method_of(spec).completed(spec.problem)
    if spec.problem.context:
        # Raises InvalidInput for an algorithm that cannot handle a context.
        tuner_for(spec.problem, method)
        if spec.start_from:
            raise InvalidInput("start_from", list(spec.start_from), "no earlier study for a study with a context")
    choice = method.choice(spec.problem)
    registry.describe(choice.name).check_installed()
    assert method.resampling is not None
    return replace(
        spec,
        algorithm=replace(spec.algorithm, options=_plain(method.algorithm_options)),
        choice=Choice(choice.name, choice.reason, _plain(choice.options)) if choice.reason else None,
        resampling=Policy(method.resampling, _plain(method.resampling_options)),
        estimator=Policy(method.estimator, _plain(method.estimator_options)),
        pruning=tuple(Policy(name, _plain(options)) for name, options in method.pruning),
        stopping=None if spec.stopping is None else stopping.parse(spec.stopping, spec.problem).to_json(),
        final_check=check,
    )


def parse_check(spec: StudySpec, check: Mapping[str, object]) -> FinalCheck:
    """Return the final check that the JSON describes. Raises InvalidInput (`final_check...`).

    With a context, the check does not ask which changes matter: `effects` is 0.
    """
    if not spec.problem.context:
        return FinalCheck.parse(check, "final_check", len(spec.problem.objectives))
    found = FinalCheck.parse({"effects": 0, **check}, "final_check")
    if found.effects:
        raise InvalidInput("final_check.effects", found.effects, "0 for a study with a context")
    return found


def expect_checkable(spec: StudySpec, check: Mapping[str, JsonValue]) -> None:
    """Raise InvalidInput (`final_check`) if the study cannot have a final check, in any of its contexts."""
    problem = spec.problem
    spaces = [problem.within(one).space for one in problem.context.table()] if problem.context else [spec.space]
    if not spec.space.has_explicit_default or any(not space.feasible(space.default()) for space in spaces):
        raise InvalidInput("final_check", check, "null, or parameters with defaults that satisfy the constraints")


def expect_nodes(spec: StudySpec, stability: Stability) -> None:
    """Raise InvalidInput if the trials of a study cannot be spread over nodes and times as `stability` needs it."""
    if spec.execution is not None and not spec.execution.placement.spread:
        raise InvalidInput("execution.placement.spread", False, "true for a study with stability")
    if stability.times is None:
        return
    if spec.execution is None:
        allowed = "null for a study whose trials a script asks for, because they run at once"
        raise InvalidInput("stability.times", stability.times, allowed)
    longest = spec.budget.max_seconds
    if longest is not None and stability.times >= longest:
        allowed = f"less than the time of the budget, {longest:g} seconds"
        raise InvalidInput("stability.times", stability.times, allowed)


@lru_cache(_REMEMBERED)
def method_of(spec: StudySpec) -> Method:
    """Return what a tuner is to do for a study. Raises InvalidInput (`stopping...`, `final_check...`)."""
    return Method(
        algorithm=(spec.choice or spec.algorithm).name,
        algorithm_options=(spec.choice or spec.algorithm).options,
        # Each version of the space has a sequence of its own. The same numbers would repeat what was measured, in the
        # dimensions that have not changed.
        seed=(spec.seed + spec.space_version - 1) % 2**63,
        resampling=None if spec.resampling is None else spec.resampling.name,
        resampling_options={} if spec.resampling is None else spec.resampling.options,
        estimator=spec.estimator.name,
        estimator_options=spec.estimator.options,
        pruning=tuple((policy.name, policy.options) for policy in spec.pruning),
        stopping=None if spec.stopping is None else stopping.parse(spec.stopping, spec.problem),
        final_check=None if spec.final_check is None else parse_check(spec, spec.final_check),
        budget=spec.budget.max_trials,
        timed=spec.budget.is_timed,
        stability=spec.stability,
        parallelism=1 if spec.execution is None else spec.execution.parallelism,
        live=None if spec.live is None else _live_rules(spec.live),
    )


def _live_rules(live: Live) -> LiveRules:
    relative = [one for one in live.guards.values() if one.kind == "above_control"]
    return LiveRules(step=live.step, ratios={one.metric: one.limit for one in relative})


@lru_cache(_REMEMBERED)
def bare_tuner(study_spec: StudySpec) -> Tuner:
    """Return a tuner that is never given any history: it says what its algorithm costs, and suggests without one."""
    return tuner_for(study_spec.problem, method_of(study_spec))


def runs_in_request(study: Study) -> bool:
    """Return whether the study's algorithm is cheap enough to be called while the study is locked."""
    return bare_tuner(spec_of(study)).cost == Cost.CHEAP


def uses_history(study: Study) -> bool:
    """Return whether suggestions depend on finished trials, so that a tuner has to be borrowed."""
    return bare_tuner(spec_of(study)).uses_history


def watches_results(study: Study) -> bool:
    """Return whether a result may end the search, by a rule that looks at the history or a budget of node-hours."""
    return method_of(spec_of(study)).stopping is not None or budget_of(study).max_node_hours is not None


def _plain(options: object) -> dict[str, JsonValue]:
    assert isinstance(options, dict)
    return dict(options)
