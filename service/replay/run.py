"""One replay: an algorithm with its policies searches a subject like a real system, trial by trial."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.algorithms import registry
from service.core import estimates
from service.core.errors import InvalidInput, JsonValue
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies import resampling, stopping
from service.replay import peers
from service.replay.replay_record import Contestant, Run
from service.replay.searcher import Searcher
from service.replay.subject import Subject
from service.tuner.method import Method
from service.tuner.tuner import Tuner

# The name of a policy that leaves the choice to the method: adaptive or none.
DEFAULT_POLICY = "default"
# A recommendation may cost as much as a suggestion, so a noisy search computes one only after this many trials.
_ASKED_EVERY = 5
# The names of the option with which algorithms set the length of their start design.
_START_OPTIONS = ("initial", "start")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The conditions that are equal for all contestants.

    `stopping`: a rule in the form of `policies.stopping.parse`. `options`: options of algorithms and policies, by name.
    """

    budget: int
    start: int
    stopping: JsonValue = None
    options: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)

    def options_of(self, name: str) -> dict[str, JsonValue]:
        """Return the given options of an algorithm or a policy."""
        return dict(self.options.get(name, {}))


class _Ours(Searcher):
    def __init__(self, subject: Subject, method: Method) -> None:
        self._tuner = Tuner(subject.problem, method)
        self._cursor = 0

    def suggest(self) -> tuple[Configuration, str] | None:
        answer = self._tuner.suggest(1, cursor=self._cursor)
        self._cursor = answer.cursor
        return (answer.items[0].configuration, answer.items[0].origin) if answer.items else None

    def update(self, trial: TrialRecord) -> None:
        self._tuner.update([trial])

    def recommend(self) -> Configuration | None:
        recommended = self._tuner.recommend()
        return None if recommended is None else recommended.configuration

    def stop(self, seconds: float) -> str | None:
        return self._tuner.stop(seconds, seconds / 3600)


def contestants(subject: Subject, algorithms: Sequence[str], policies: Sequence[str], terms: Terms) -> list[Contestant]:
    """Return every algorithm with every policy, and each sampler of another library, which has no policy, once.

    Raises InvalidInput: `algorithms`, `resampling` or `option` for a name that is unknown, not installed or not allowed
    by the problem.
    """
    found: dict[Contestant, None] = {}
    for name in algorithms:
        if name in peers.NAMES:
            peers.check(name, subject.problem)
            found[Contestant(name, "none")] = None
            continue
        if name not in registry.names():
            raise InvalidInput("algorithms", name, "one of " + ", ".join((*registry.names(), *peers.NAMES)))
        for policy in policies:
            if policy != DEFAULT_POLICY and policy not in resampling.names():
                allowed = ", ".join((DEFAULT_POLICY, *resampling.names()))
                raise InvalidInput("resampling", policy, f"one of {allowed}")
            method = _method(subject, name, None if policy == DEFAULT_POLICY else policy, 0, terms)
            used = method.completed(subject.problem).resampling
            assert used is not None
            found[Contestant(name, used)] = None
    named = {name for one in found for name in (one.algorithm, one.resampling)}
    for name, given in terms.options.items():
        if name not in named:
            raise InvalidInput("option", name, "an algorithm or a policy of this replay: " + ", ".join(sorted(named)))
        if name in peers.NAMES and given:
            raise InvalidInput(
                "option", f"{name}.{next(iter(given))}", "no options for other libraries, which use their defaults"
            )
    return list(found)


def replay(subject: Subject, contestant: Contestant, seed: int, terms: Terms) -> Run:
    """Search the subject once and return the run. The same arguments give the same run except its computing time."""
    searcher: Searcher
    if contestant.algorithm in peers.NAMES:
        searcher = peers.create(contestant.algorithm, subject.problem, seed=seed, start=terms.start)
    else:
        searcher = _Ours(subject, _method(subject, contestant.algorithm, contestant.resampling, seed, terms))
    single = len(subject.problem.objectives) == 1
    trials: list[TrialRecord] = []
    rows: list[int] = []
    recommended: list[int] = []
    visits: Counter[int] = Counter()
    clock = computing = 0.0
    reason: str | None = None
    while len(trials) < terms.budget and reason is None:
        began = time.process_time()
        suggested = searcher.suggest()
        computing += time.process_time() - began
        if suggested is None:
            reason = "Every configuration was measured."
            break
        configuration, origin = suggested
        trial, row = _measured(subject, configuration, origin, len(trials) + 1, clock, seed, visits)
        clock += trial.seconds or 0.0
        trials.append(trial)
        rows.append(row)
        began = time.process_time()
        searcher.update(trial)
        computing += time.process_time() - began
        asked = single and subject.problem.noisy and len(trials) % _ASKED_EVERY == 0
        recommended.append(_row(subject, searcher.recommend()) if asked else -1)
        reason = searcher.stop(clock)
    if single:
        chosen = searcher.recommend()
        final = [] if chosen is None else [_row(subject, chosen)]
    else:
        final = [_row(subject, one.configuration) for one in estimates.best(subject.problem, trials)]
    return Run(
        contestant=contestant,
        seed=seed,
        rows=rows,
        values=[[trial.metrics[metric] for metric in subject.problem.metrics if trial.metrics] for trial in trials],
        seconds=[trial.seconds for trial in trials],
        recommended=recommended,
        final=final,
        reason=reason or "",
        computing=computing,
    )


def _measured(
    subject: Subject,
    configuration: Configuration,
    origin: str,
    number: int,
    clock: float,
    seed: int,
    visits: Counter[int],
) -> tuple[TrialRecord, int]:
    row = subject.row(configuration)
    if row is None:
        return TrialRecord(number, configuration, TrialState.INFEASIBLE, {}, number, None, origin), -1
    measurement = subject.measure(row, clock=clock, seed=seed, visit=visits[row])
    visits[row] += 1
    metrics = dict(zip(subject.problem.metrics, map(float, measurement.values), strict=True))
    return TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number, measurement.seconds, origin), row


def _row(subject: Subject, configuration: Configuration | None) -> int:
    row = None if configuration is None else subject.row(configuration)
    return -1 if row is None else row


def _method(subject: Subject, algorithm: str, policy: str | None, seed: int, terms: Terms) -> Method:
    """Return the method. Raises InvalidInput for an option that is not allowed."""
    options = terms.options_of(algorithm)
    for option in registry.describe(algorithm).options:
        if option.name in _START_OPTIONS:
            options.setdefault(option.name, terms.start)
    return Method(
        algorithm=algorithm,
        algorithm_options=options,
        seed=seed,
        resampling=policy,
        resampling_options={} if policy is None else terms.options_of(policy),
        stopping=None if terms.stopping is None else stopping.parse(terms.stopping, subject.problem),
        budget=terms.budget,
    )
