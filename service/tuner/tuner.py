"""The whole method for one study: suggestions, pruning, the end of the search and the recommendation.

The algorithm is created at its first use, so a process that only checks whether to continue never imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from service.algorithms import registry
from service.algorithms.base import NOTHING_FIXED, Algorithm, Cost
from service.core import estimates
from service.core.encoding import Encoding
from service.core.errors import JsonValue
from service.core.lifecycle import TrialState
from service.core.parameters import identity
from service.core.penalties import penalised, without_huge
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.prospects import Prospect
from service.core.sensitivity import Sensitivities
from service.core.space import Configuration, Scalar
from service.core.stability import Stability
from service.core.trial import TrialRecord
from service.policies import members, noise, pruning, resampling
from service.policies.check import CheckResult, FinalCheck
from service.policies.check_rounds import Round, begun
from service.policies.pruning import Running, Step
from service.policies.stability import Assessment
from service.policies.stages import Stages
from service.policies.stopping import History, Progress
from service.tuner.checking import rounds_of
from service.tuner.elimination import Elimination
from service.tuner.method import Method
from service.tuner.recommendation import (
    Found,
    ParetoSet,
    Recommendation,
    by_estimate,
    by_posterior,
    expected_improvement,
    leading,
    pareto_set,
    samples_of,
)
from service.tuner.stable import counted, most_stable
from service.tuner.suggestion import Closing, Suggestion, Suggestions
from service.tuner.verdict import ParetoVerdict, conclude_pareto, member_of

# The number of configurations at which the remaining gain is evaluated.
_SAMPLE = 256
# Algorithms whose posterior is good enough for a recommendation. The process of `smbo` often takes noise for shape: the
# value was more than 1,000 deviations away in 2.5 % of simulated studies (tests/benchmarks/coverage.py).
_RELIABLE = ("gp",)
# Averages over neighbours, whose cost is quadratic, are limited to this number of the latest configurations.
_MOST_NEIGHBOURS = 1000
# From this many trials on, the objective counts as the running time if its ratios to the running times differ by at
# most this factor.
_ENOUGH_SHARES, _MOST_UNLIKE = 3, 1.5
_SECONDS = ("s", "sec", "second", "seconds")
NO_STEPS: Mapping[int, Sequence[Step]] = {}
# The most repeats after a stopping rule, and the number of trials that policies then plan with.
_MOST_REPEATS, _PLANNED_REPEATS = 12, 3


class Tuner:
    """The method applied to one study. An instance is not thread-safe; each caller has its own.

    The same method, history, pending trials and cursor give the same answers in any process.
    """

    def __init__(self, problem: Problem, method: Method, lender: Callable[[], Algorithm] | None = None) -> None:
        """`lender` returns the algorithm of several tuners that learn together; None: the tuner has its own.

        Raises InvalidInput as `Method.completed` does.
        """
        self._lender = lender
        self.problem = problem
        self.method = method.completed(problem)
        self.choice = method.choice(problem)
        entry = registry.describe(self.choice.name)
        start = self.method.start(problem)
        self.cost: Cost = entry.cost
        assert self.method.resampling is not None
        self._stages = None
        if self.method.stability is not None:
            self._stages = Stages(problem, self.method.stability, seed=method.seed, budget=method.budget, start=start)
        self._resampling = self._stages or resampling.create(
            self.method.resampling,
            problem,
            seed=method.seed,
            options=self.method.resampling_options,
            budget=method.budget,
            start=start,
        )
        self._resamples = self._stages is not None or self.method.resampling != "none"
        # Without noise no configuration is suggested twice.
        self.uses_history = entry.uses_history or self._resamples or not problem.noisy
        self._pruning = [
            pruning.create(name, problem, options=options, start=start) for name, options in self.method.pruning
        ]
        self.uses_measurements = any(pruning.describe(name).needs_measurements for name, _ in self.method.pruning)
        neighbours = float(str(self.method.estimator_options["neighbours"]))
        is_estimated = self.method.estimator != "median" or neighbours > 0.0 or self._stages is not None
        self._aggregates = len(problem.objectives) == 1 and is_estimated
        self._finished: list[TrialRecord] = []
        self._history = History(problem)
        self._closing: Closing | None = None
        self._algorithm: Algorithm | None = None
        self._state: JsonValue = None

    @property
    def finished(self) -> Sequence[TrialRecord]:
        """The trials that were passed to `update`, in their order."""
        return self._finished

    @property
    def closing(self) -> Closing | None:
        """The last part of the search, once a stopping rule has had a reason."""
        return self._closing

    def close(self, closing: Closing | None) -> None:
        """Set `closing`, which a service keeps between processes."""
        self._closing = closing

    def limit(self, budget: int | None) -> None:
        """Set the number of trials of the search, in place of the method's budget; None: no known limit."""
        self._resampling.budget = budget

    def update(self, finished: Sequence[TrialRecord], steps: Mapping[int, Sequence[Step]] = NO_STEPS) -> None:
        """Learn from finished trials, each passed exactly once; `steps`: their measurements by trial number."""
        if not finished:
            return
        self._finished += finished
        finished = [without_huge(trial) for trial in finished]
        self._history.update(finished)
        self._resampling.update(finished)
        for policy in self._pruning:
            policy.update(finished, steps)
        if self._algorithm is None:
            return
        if self._aggregates:
            # Earlier values may have changed, and an algorithm takes each trial once: a new one learns them all.
            self._state, self._algorithm = self._algorithm.dump(), None
        else:
            self._algorithm.update(finished)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Suggestions:
        """Return the next measurements, as `Algorithm.suggest` does; the resampling policy has precedence.

        After a stopping rule there are repeats alone, so that there may be fewer or none.
        """
        waiting = list(pending)
        items: list[Suggestion] = []
        while len(items) < count and (again := self.again(waiting, fixed)) is not None:
            items.append(Suggestion(again, "replicate", reason=self.repeat_reason))
            waiting.append(requested(again, "replicate"))
        if len(items) == count or self._closing is not None:
            return Suggestions(tuple(items), cursor, False)
        batch = self._made().suggest(count - len(items), cursor=cursor, pending=waiting, fixed=fixed)
        items += [Suggestion(configuration, "suggested") for configuration in batch.configurations]
        if batch.exhausted and self._stages is not None and not items:
            items += self._last_stage(count, waiting, fixed)
            return Suggestions(tuple(items), batch.cursor, not items)
        return Suggestions(tuple(items), batch.cursor, batch.exhausted and self._stages is None)

    def _last_stage(
        self, count: int, pending: Sequence[TrialRecord], fixed: Mapping[str, Scalar]
    ) -> Sequence[Suggestion]:
        """Return what is left to measure of the last stage, once the space holds no new configuration."""
        waiting = list(pending)
        items: list[Suggestion] = []
        while len(items) < count:
            again = self._resampling.again(pending=waiting, predict=self._believed, left=1)
            if again is None or not fits(again, fixed):
                break
            items.append(Suggestion(again, "replicate"))
            waiting.append(requested(again, "replicate"))
        return items

    def again(
        self, pending: Sequence[TrialRecord] = (), fixed: Mapping[str, Scalar] = NOTHING_FIXED
    ) -> Configuration | None:
        """Return the configuration that the resampling policy measures again next; None if there is none."""
        if not self._resamples:
            return None
        left = None
        if self._closing is not None:
            most = _MOST_REPEATS if self._stages is None else self._stages.most_repeats
            if self._repeats(pending) >= most:
                return None
            left = _PLANNED_REPEATS
        found = self._resampling.again(pending=pending, predict=self._believed, left=left)
        return found if found is not None and fits(found, fixed) else None

    @property
    def repeat_reason(self) -> str:
        """Why `again` has chosen its latest answer."""
        return self._resampling.reason

    def _repeats(self, pending: Sequence[TrialRecord]) -> int:
        """Return how many trials have begun since a stopping rule had a reason."""
        assert self._closing is not None
        after = self._closing.after
        begun = sum(trial.is_of_search and trial.number > after for trial in self._finished)
        # Trials of the present ask have no number yet.
        return begun + sum(trial.number == 0 or trial.number > after for trial in pending)

    def found(self, *, costly: bool = True) -> Found | None:
        """Return what the search has found so far, in the form in which it is stored; None if that is nothing.

        With several objectives it is the Pareto set by the posterior of a costly algorithm; None without that.
        """
        if len(self.problem.objectives) == 1:
            return self.recommend(costly=costly)
        found = samples_of(self.problem, self._without_penalties())
        if not (found and costly and self.problem.noisy and self.choice.name in _RELIABLE):
            return None
        predictions = self._made().predictions([one.configuration for one in found])
        return pareto_set(self.problem, found, predictions) if predictions else None

    def recommend(self, *, costly: bool = True) -> Recommendation | None:
        """Return the recommended configuration; None with several objectives or without measurements.

        The choice uses the algorithm's posterior if there is a reliable one (for a costly algorithm only with
        `costly`), and otherwise the estimator over replicates, with a shift towards the neighbours of each
        configuration.
        """
        if self.stability is not None:
            return most_stable(self.problem, self.stability, self.method.stability or Stability())
        found = samples_of(self.problem, self._finished)
        if not found or len(self.problem.objectives) > 1:
            return None
        if self.problem.noisy and (costly or self.cost == Cost.CHEAP):
            leaders = leading(self.problem, found)
            prediction = self._believed([one.configuration for one in leaders])
            if prediction is not None:
                return by_posterior(self.problem, leaders, prediction)
        neighbours = float(str(self.method.estimator_options["neighbours"]))
        adaptive = self.method.resampling == "adaptive"
        return by_estimate(self.problem, found, self._estimate, neighbours, adaptive=adaptive)

    @property
    def stability(self) -> Assessment | None:
        """The estimates of a study with `stability:`; None for other studies."""
        return None if self._stages is None else self._stages.assessment

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        """Return the predictions of the algorithm's posterior, at its cost; None if it has none."""
        return self._predict(configurations)

    def sensitivities(self) -> Sensitivities:
        """Return the parameters' sensitivities by the algorithm's posterior, at its cost; empty if it has none."""
        return self._made().sensitivities()

    def prospects(self) -> Sequence[Prospect]:
        """Return the probabilities of gains by the algorithm's posterior, at its cost; empty if it has none."""
        return self._made().prospects()

    def _believed(self, configurations: Sequence[Configuration]) -> Prediction | None:
        """Return the predictions of a reliable posterior; None if there is none."""
        return self._predict(configurations) if self.choice.name in _RELIABLE else None

    def members(self, policy: FinalCheck, known: ParetoSet | None = None) -> list[Configuration] | None:
        """Return the members of the Pareto set that the final check compares with the default; None without results.

        The default is not one of them, so the list may be empty. `known`: the result of `found`. Without it, the set
        follows from the medians.
        """
        known = known or self._measured_set()
        if known is None:
            return None
        key, signs = self.problem.space.key, self.problem.signs()
        start = key(self.problem.space.default())
        rows = zip(known.configurations, known.values, strict=True)
        front = [(one, values) for one, values in rows if key(one) != start]
        if not front:
            return []
        default = None if known.default is None else signs * np.array(known.default)
        costs = signs * np.array([values for _, values in front])
        chosen = members.choose(costs, default, policy.most_members(len(signs)))
        return [front[place][0] for place in chosen]

    def _without_penalties(self) -> Sequence[TrialRecord]:
        """Return the finished trials without a penalty in any objective, or all if each result has one."""
        bad = penalised(self.problem, self._finished)
        good = [trial for trial in self._finished if trial.number not in bad]
        return good if any(trial.state == TrialState.COMPLETED for trial in good) else self._finished

    def _measured_set(self) -> ParetoSet | None:
        """Return the Pareto set by the medians of the configurations; None without results."""
        found = estimates.aggregate(self.problem, self._without_penalties())
        if not found:
            return None

        def values(one: estimates.Estimate) -> tuple[float, ...]:
            return tuple(one.median[metric] for metric in self.problem.metrics)

        front = estimates.best_of(self.problem, found)
        start = self.problem.space.key(self.problem.space.default())
        default = next((values(one) for one in found if self.problem.space.key(one.configuration) == start), None)
        return ParetoSet(tuple(one.configuration for one in front), tuple(map(values, front)), default)

    def check(
        self,
        best: Configuration | Sequence[Configuration],
        count: int,
        pending: Sequence[TrialRecord] = (),
        policy: FinalCheck | None = None,
    ) -> list[Configuration]:
        """Return up to `count` configurations for the final check, in the order of `check_runs`."""
        return [one.configuration for one in self.check_runs(best, count, pending, policy)]

    def check_runs(
        self,
        best: Configuration | Sequence[Configuration],
        count: int,
        pending: Sequence[TrialRecord] = (),
        policy: FinalCheck | None = None,
        *,
        most_open: int | None = None,
        first: int | None = None,
    ) -> list[Suggestion]:
        """Return up to `count` runs for the final check, which measures `best` and the default in rounds.

        The result is empty if the finished and pending trials are enough. Only the check's own trials count: `best` was
        chosen by the others, so their values make it look better than it is.

        Args:
            best: the best configuration, or members of the Pareto set.
            policy: by default the method's.
            most_open: how many rounds may be open at once; None: any number.
            first: the number of the next new round; by default the one after the last.
        """
        policy = self._policy(policy)
        sides = self._sides(best)
        turns = policy.turns(
            self.rounds(best, pending, policy), len(sides), self.method.seed, count, most_open=most_open, first=first
        )
        return [Suggestion(sides[turn.side], "check", turn.round) for turn in turns]

    def spared(
        self, best: Configuration | Sequence[Configuration], pending: Sequence[TrialRecord], policy: FinalCheck
    ) -> list[int]:
        """Return the numbers of the trials that wait to be begun, and that the final check no longer needs.

        Their round is void, or the check is over.
        """
        sides = self._sides(best)
        rounds = self.rounds(best, pending, policy)
        void = {one.number for one in rounds if one.is_void}
        is_over = policy.is_over(rounds, len(sides))
        keys = {self.problem.space.key(one) for one in sides}
        return [
            trial.number
            for trial in pending
            if trial.state == TrialState.REQUESTED
            and _is_of(policy, trial)
            and self.problem.space.key(trial.configuration) in keys
            and (is_over or trial.round in void)
        ]

    def rounds(
        self,
        best: Configuration | Sequence[Configuration],
        pending: Sequence[TrialRecord] = (),
        policy: FinalCheck | None = None,
    ) -> list[Round]:
        """Return the rounds of the final check of `best`, in the order of their numbers."""
        trials = filter(partial(_is_of, self._policy(policy)), [*self._finished, *pending])
        return rounds_of(self.problem, self._sides(best), trials)

    def checked(self, best: Configuration, policy: FinalCheck | None = None) -> CheckResult:
        """Return the final check's result for `best`."""
        policy = self._policy(policy)
        return policy.result(self.rounds(best, (), policy), self.problem.objectives[0])

    def checked_members(self, best: Sequence[Configuration], policy: FinalCheck) -> ParetoVerdict:
        """Return the verdict of the final check on members of the Pareto set."""
        rounds = self.rounds(best, (), policy)
        found = policy.comparisons(rounds, len(best) + 1) if best else []
        measured = [
            member_of(self.problem, one, policy.pair(rounds, side, len(best) + 1), comparisons)
            for side, (one, comparisons) in enumerate(zip(best, found, strict=True), start=1)
        ]
        return conclude_pareto(measured, policy.level, begun(rounds))

    def elimination(
        self, best: Configuration, checked: CheckResult, policy: FinalCheck, pending: Sequence[TrialRecord] = ()
    ) -> Elimination:
        """Return the part of the final check that finds which changes cause the proven gain of `best`."""
        return Elimination(self.problem, policy, self.method.seed, best, checked, self._finished, pending)

    def stop(
        self, seconds: float, node_hours: float, pending: Sequence[TrialRecord] = (), *, costly: bool = True
    ) -> str | None:
        """Return the reason to end the search now; None if it continues.

        When a stopping rule has a reason, the search goes on with the repeats that the resampling policy wants at the
        end of a budget (`closing`), and ends after them with this reason.

        Args:
            seconds: wall time since the first trial.
            pending: trials without a result. The search does not end before all of them have one, unless the policy
                repeats nothing.
            costly: whether the posterior of a costly algorithm may be computed to find out which repeats are wanted.
                Without it, a search with repeats does not end here.
        """
        if self._closing is None:
            reason = self._reason(seconds, node_hours, costly=costly)
            if reason is None:
                return None
            numbers = [trial.number for trial in (*self._finished, *pending)]
            self.close(Closing(reason, max(numbers, default=0)))
        assert self._closing is not None
        is_known = costly or self.cost == Cost.CHEAP
        goes_on = self._resamples and (pending or not is_known or self._wants_repeats())
        return None if goes_on else self._closing.reason

    def _wants_repeats(self) -> bool:
        return self.again() is not None

    def _reason(self, seconds: float, node_hours: float, *, costly: bool) -> str | None:
        """Return the reason of the stopping rule to end the search; None without one.

        A rule that needs a posterior gives no reason without `costly` if the algorithm has not been created yet.
        """
        rule = self.method.stopping
        if rule is None:
            return None
        self._history.unsettled = self._resampling.unsettled
        predicts = rule.needs_prediction and (costly or self._algorithm is not None)
        remaining, spread = self._outlook() if predicts else (None, None)
        return rule.reason(
            Progress(
                history=self._history,
                seconds=seconds,
                node_hours=node_hours,
                remaining=remaining,
                noise=spread,
            )
        )

    def prune(self, running: Running) -> str | None:
        """Return the reason to stop a running trial; None if it continues."""
        return next((reason for policy in self._pruning if (reason := policy.prune(running)) is not None), None)

    def bound(self, running: Running) -> dict[str, float]:
        """Return a bound on the first objective of a trial that is stopped now: its value is at least this bad.

        If the objective is a running time that is minimised, the bound is the running time so far, and otherwise the
        latest reported value.
        """
        metric = self.problem.metrics[0]
        share = self._share_of_running_time()
        if share is not None:
            return {metric: share * running.seconds}
        return {metric: running.measurements[-1].value} if running.measurements else {}

    def _share_of_running_time(self) -> float | None:
        """Return the least amount that a second of running time adds to the first objective; None for other objectives.

        The trials decide: the values of a time are nearly proportional to the running times. Before there are enough
        trials, the objective's unit decides.
        """
        objective = self.problem.objectives[0]
        if objective.goal != "minimize":
            return None
        shares = [
            trial.metrics[objective.metric] / trial.seconds
            for trial in self._finished
            if trial.state == TrialState.COMPLETED and trial.seconds and objective.metric in trial.metrics
        ]
        if len(shares) < _ENOUGH_SHARES:
            return 1.0 if (objective.unit or objective.metric) in _SECONDS else None
        return min(shares) if 0 < max(shares) <= _MOST_UNLIKE * min(shares) else None

    def dump(self) -> JsonValue:
        """Return state that is costly to compute again, for storage."""
        return self._state if self._algorithm is None else self._algorithm.dump()

    def load(self, state: JsonValue) -> None:
        """Restore the result of `dump`; an unusable state is ignored."""
        self._state = state
        if self._algorithm is not None:
            self._algorithm.load(state)

    def _outlook(self) -> tuple[float | None, float | None]:
        """Return the expected remaining improvement and the standard deviation of one measurement.

        The improvement is the largest expected improvement of the latent value over the best posterior mean, among the
        measured configurations and a sample of the others.
        """
        found = samples_of(self.problem, self._finished)
        if not found:
            return None, None
        sample = registry.create("random", self.problem, seed=self.method.seed, options={}).suggest(_SAMPLE, cursor=0)
        prediction = self._predict([*(one.configuration for one in found), *sample.configurations])
        if prediction is None:
            return None, None
        return expected_improvement(prediction, len(found)), prediction.noise

    def _policy(self, policy: FinalCheck | None) -> FinalCheck:
        found = policy or self.method.final_check
        assert found is not None
        return found

    def _sides(self, best: Configuration | Sequence[Configuration]) -> list[Configuration]:
        """Return the configurations that the final check measures, the default first."""
        return [self.problem.space.default(), *([best] if isinstance(best, Mapping) else best)]

    def _made(self) -> Algorithm:
        if self._lender is not None:
            return self._lender()
        if self._algorithm is None:
            algorithm = registry.create(
                self.choice.name,
                self.problem,
                seed=self.method.seed,
                options=self.method.chosen_options(self.problem),
            )
            if self._state is not None:
                algorithm.load(self._state)
            if self._finished:
                trials = self._aggregated() if self._aggregates else self._finished
                algorithm.update([without_huge(trial) for trial in trials])
            self._algorithm = algorithm
        return self._algorithm

    def _aggregated(self) -> list[TrialRecord]:
        """Return the finished trials with values whose medians are the estimates of their configurations.

        The search then follows the study's estimator [robert-2021, section 5.2]. By itself, every algorithm uses the
        median or the mean of a configuration's runs. All runs of a configuration move by the same distance, so a model
        still sees their noise. Trials without a value of the first objective stay as they are.
        """
        if self.stability is not None:
            return counted(self.problem, self.stability, self._finished)
        sign, metric = float(self.problem.signs()[0]), self.problem.metrics[0]
        found = samples_of(self.problem, self._finished)
        values = np.array([self._estimate(one.values, one.bounds) for one in found])
        if found and (radius := float(str(self.method.estimator_options["neighbours"]))) > 0.0:
            latest = slice(-_MOST_NEIGHBOURS, None)
            rows = Encoding(self.problem.space).encode([one.configuration for one in found[latest]])
            counts = np.array([len(one.values) for one in found[latest]], dtype=float)
            values[latest] = noise.aggregate_neighbours(rows, values[latest], counts, radius)
        key = self.problem.space.key
        moves = {
            key(one.configuration): sign * (value - estimates.median(one.values))
            for one, value in zip(found, values.tolist(), strict=True)
        }
        return [
            replace(trial, metrics={**trial.metrics, metric: trial.metrics[metric] + moves[key(trial.configuration)]})
            if trial.state == TrialState.COMPLETED and key(trial.configuration) in moves and metric in trial.metrics
            else trial
            for trial in self._finished
        ]

    def _predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        return self._made().predict(configurations)

    def _estimate(self, values: Sequence[float], bounds: Sequence[float]) -> float:
        return noise.estimate(self.method.estimator, values, self.method.estimator_options, bounds)


def _is_of(policy: FinalCheck, trial: TrialRecord) -> bool:
    """Return whether a trial belongs to the final check with this policy."""
    return trial.origin == "check" and trial.number > policy.after


def requested(configuration: Configuration, origin: str) -> TrialRecord:
    """Return the record of a trial that is about to be added."""
    return TrialRecord(0, configuration, TrialState.REQUESTED, {}, origin=origin)


def fits(configuration: Configuration, fixed: Mapping[str, Scalar]) -> bool:
    """Return whether a configuration has all of the fixed values."""
    return all(
        name in configuration and identity(configuration[name]) == identity(value) for name, value in fixed.items()
    )
