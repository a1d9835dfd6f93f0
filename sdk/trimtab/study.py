"""A study: ask for trials, tell their results, read what was found."""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from types import EllipsisType
from typing import TYPE_CHECKING, TypeAlias

from trimtab import converters
from trimtab._gen import tuning_pb2 as pb
from trimtab.asking import Desk
from trimtab.errors import Conflict, InvalidInput, JsonValue, NotFound
from trimtab.method import Recommendation, Verdict
from trimtab.objective import Objective
from trimtab.space import Params
from trimtab.spec import Outside, StudySpec, StudyState, StudyStatus
from trimtab.transport import Transport
from trimtab.trial import Trial, TrialState

if TYPE_CHECKING:
    import pandas as pd

PAGE_SIZE = 1000

Metrics: TypeAlias = float | Mapping[str, float]
"""A trial's result: one number for a study with one objective, else values by metric."""


@dataclass(frozen=True)
class Change:
    """The study as it is now and the trials that changed since the last change."""

    status: StudyStatus
    trials: tuple[Trial, ...]


class Study:
    """A study of the service, made by `Client.create_study` or `Client.get_study`. Thread-safe.

    For example:

        trials = study.ask(4)
        for trial in trials:
            study.tell(trial, {"seconds": measure(**trial.params)})
        print(study.best_trial.params)
    """

    def __init__(self, transport: Transport, desk: Desk, message: pb.Study) -> None:
        self._transport = transport
        self._stub = transport.stub
        self._desk = desk
        self._message = message
        self._exhausted = message.space_exhausted

    def __repr__(self) -> str:
        status = self.status
        return f"<trimtab.Study {self.name!r} {status.state}, {status.finished_count} trials finished>"

    # --- what it is

    @property
    def name(self) -> str:
        """The study's name, unique in the tenant."""
        return self._message.name

    @cached_property
    def spec(self) -> StudySpec:
        """What the study is asked to do, as of the last call that said so."""
        return converters.from_spec(self._message.spec)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What the study looks for."""
        return self.spec.objectives

    @property
    def client_id(self) -> str:
        """Who asks for trials through this object."""
        return self._desk.client_id

    @property
    def status(self) -> StudyStatus:
        """How far the study has come, as of the last call that said so; `refresh` reads it anew."""
        return converters.from_status(self._message)

    @property
    def state(self) -> StudyState:
        """`status.state`."""
        return self.status.state

    @property
    def algorithm(self) -> str:
        """The algorithm at work: the one that "auto" has chosen; `status.algorithm_choice` has its reason."""
        choice = self.status.algorithm_choice
        return self.spec.algorithm if choice is None else choice.name

    @property
    def verdict(self) -> Verdict | None:
        """What the final check has found out, read anew; None before it is over, and without one.

        For example:

            print(study.verdict)    # faster by 12 % (95 %: 9 to 15)
        """
        return self.refresh().verdict

    @property
    def space_exhausted(self) -> bool:
        """Whether the space held no further configuration when last asked: `ask` then gives fewer trials, or none."""
        return self._exhausted

    def refresh(self) -> StudyStatus:
        """Reads the study's status from the service."""
        self._keep(self._transport.call(self._stub.GetStudy, pb.GetStudyRequest(name=self.name)))
        return self.status

    # --- ask and tell

    def ask(
        self, n: int = 1, *, fixed: Mapping[str, object] | None = None, timeout: float | None = None
    ) -> list[Trial]:
        """The next `n` trials to measure, once the algorithm has them.

            [trial] = study.ask()
            trials = study.ask(4, fixed={"alg": "b"})

        Trials that this client_id was given before and that this process does not know of (it crashed, and was
        started again) come first. There are fewer than `n` only if the space is exhausted; see `space_exhausted`.

        Args:
            n: how many, 1 to 1000.
            fixed: parameters that all of them must have at these values.
            timeout: how many seconds to wait for the algorithm; None: as long as it works.

        Raises:
            Timeout: naming the operation, which goes on: the next ask gets its trials.
            OperationFailed: the algorithm failed; the message has its reason.
            Conflict: the study is not ACTIVE, its budget is used up, or it runs on agents.
        """
        count = converters.to_int("n", n)
        wanted = converters.to_params("fixed", self.spec.space, fixed or {})
        answer = self._desk.ask(count, wanted, timeout)
        self._exhausted = answer.exhausted
        return [converters.from_trial(self.spec.space, trial) for trial in answer.trials]

    def tell(
        self,
        trial: Trial | int,
        metrics: Metrics | None = None,
        *,
        infeasible: str | None = None,
        failed: str | None = None,
    ) -> Trial:
        """Ends a trial with its result. Exactly one of the three is given.

            study.tell(trial, 1.2)                                  # a study with one objective
            study.tell(trial, {"seconds": 1.2, "watts": 80.0})
            study.tell(trial, infeasible="does not compile")        # this configuration cannot work
            study.tell(trial, failed="the disk was full")           # not the configuration's fault

        The same result told again changes nothing.

        Raises:
            Conflict: the trial is finished already, with another result (`trial_already_finished`).
            InvalidInput: a metric that is missing or not finite, in `data["field"]`.
        """
        if sum(item is not None for item in (metrics, infeasible, failed)) != 1:
            raise InvalidInput(
                "invalid_argument", "tell takes exactly one of metrics, infeasible=REASON and failed=REASON"
            )
        number = _number(trial)
        if metrics is not None:
            complete = pb.CompleteTrialRequest(study=self.name, trial=number, metrics=self._metrics(metrics))
            told = self._transport.call(self._stub.CompleteTrial, complete)
        else:
            reason = failed if infeasible is None else infeasible
            if not isinstance(reason, str):
                raise InvalidInput.of("reason", reason, "a text that says why")
            fail = pb.FailTrialRequest(study=self.name, trial=number, infeasible=infeasible is not None, reason=reason)
            told = self._transport.call(self._stub.FailTrial, fail)
        self._desk.put_away(number)
        return converters.from_trial(self.spec.space, told)

    def report(self, trial: Trial | int, *, step: int, metrics: Metrics, elapsed: float | None = None) -> Trial:
        """Reports metric values at a step of a trial that goes on. `elapsed` is the trial's time so far, in seconds.

            trial = study.report(trial, step=3, metrics={"seconds": 2.0})
            if trial.should_prune():
                ...                                                 # nothing more needs to be told of it

        A pruning policy of the study may stop the trial: it comes back PRUNED, and is finished.

        Raises:
            Conflict: the step was reported with other values (`step_already_reported`), or the trial is finished.
        """
        measurement = pb.Measurement(step=converters.to_int("step", step), metrics=self._metrics(metrics))
        if elapsed is not None:
            measurement.elapsed.CopyFrom(converters.to_duration("elapsed", elapsed))
        request = pb.ReportMeasurementRequest(study=self.name, trial=_number(trial), measurement=measurement)
        reported = converters.from_trial(self.spec.space, self._transport.call(self._stub.ReportMeasurement, request))
        if reported.state.finished:
            self._desk.put_away(reported.number)
        return reported

    def stop_trial(self, trial: Trial | int, reason: str = "") -> Trial:
        """Ends a running trial early (PRUNED): its last measurement then counts as a bound."""
        number = _number(trial)
        request = pb.StopTrialRequest(study=self.name, trial=number, reason=reason)
        stopped = self._transport.call(self._stub.StopTrial, request)
        self._desk.put_away(number)
        return converters.from_trial(self.spec.space, stopped)

    def add_trial(self, params: Mapping[str, object], metrics: Metrics, *, request_id: str | None = None) -> Trial:
        """Adds a configuration of your own that has been measured.

            study.add_trial({"x": 0.5, "n": 8}, {"seconds": 1.4})

        Added again with the same `request_id`, of 1 to 100 characters, it is the same trial: for programs that do not
        know whether they came so far before they crashed.
        """
        request = pb.AddTrialRequest(
            study=self.name,
            params=converters.to_params("params", self.spec.space, params),
            metrics=self._metrics(metrics),
            request_id=request_id or uuid.uuid4().hex,
        )
        return converters.from_trial(self.spec.space, self._transport.call(self._stub.AddTrial, request))

    def enqueue(self, params: Mapping[str, object], *, count: int = 1) -> list[Trial]:
        """Has a configuration of your own measured: the next ask gets it, or the next free agent.

            study.enqueue({"x": 0.5, "n": 8}, count=3)              # three times, for the noise

        Trials that wait for an agent already stay before it. They count against the budget.

        Raises:
            InvalidInput: a value outside the space, in `data["field"]`.
            Conflict: the study has ended (`study_not_active`), or its budget holds fewer trials (`budget_exhausted`).
        """
        request = pb.EnqueueTrialsRequest(
            study=self.name,
            params=converters.to_params("params", self.spec.space, params),
            count=converters.to_int("count", count),
            request_id=uuid.uuid4().hex,
        )
        answer = self._transport.call(self._stub.EnqueueTrials, request)
        return [converters.from_trial(self.spec.space, trial) for trial in answer.trials]

    def optimize(
        self,
        fn: Callable[[Params], Metrics],
        n_trials: int | None = None,
        *,
        parallel: int = 1,
        timeout: float | None = None,
        progress: bool = True,
        fixed: Mapping[str, object] | None = None,
        catch: tuple[type[Exception], ...] = (Exception,),
    ) -> None:
        """Asks, measures with `fn` and tells, until enough is done.

            def fn(params: dict[str, ...]) -> float:
                return run_program(**params)

            study.optimize(fn, n_trials=50, parallel=4)

        `fn` gets the parameters and returns the objective's value, or a dict of metrics. If it raises
        `trimtab.Infeasible`, the configuration counts as one that cannot work; any other exception makes the trial
        FAILED, with the exception as its reason.

        Ctrl-C starts nothing new, lets what runs in threads finish, and leaves no trial open; a second Ctrl-C marks
        what still runs as FAILED and does not wait for it.

        Args:
            fn: called in the calling thread, or in `parallel` threads if that is more than one.
            n_trials: how many trials; None: until the study's own budget is used up or its space exhausted.
            parallel: how many at a time.
            timeout: seconds after which no further trial is begun.
            progress: shows a progress bar with the best so far.
            fixed: parameters that all trials must have at these values.
            catch: kinds of exceptions of `fn` that do not end the run. Any other is raised again, after the trials
                that run have finished. So is the last one of ten trials failed in a row: `fn` is taken to be broken.
        """
        from trimtab.optimize import Run

        Run(
            self,
            fn,
            n_trials=n_trials,
            parallel=parallel,
            timeout=timeout,
            progress=progress,
            fixed=fixed,
            catch=catch,
        ).run()

    def as_file(self) -> str:
        """Returns the study file (YAML) that describes the study again, with its space and budget as they are now."""
        return self._transport.call(self._stub.GetStudyFile, pb.GetStudyFileRequest(study=self.name)).text

    def file_content(self) -> dict[str, JsonValue]:
        """Returns the content of the study file with all defaults, for programs."""
        answer = self._transport.call(self._stub.GetStudyFile, pb.GetStudyFileRequest(study=self.name))
        content: dict[str, JsonValue] = json.loads(answer.json)
        return content

    # --- what was found

    @property
    def recommendation(self) -> Recommendation | None:
        """The configuration to take, and what to expect of it; None with several objectives and before any result.

        For example:

            found = study.recommendation
            print(found.params, found.value, found.low, found.high)
        """
        answer = self._transport.call(self._stub.GetBestTrials, pb.GetBestTrialsRequest(study=self.name))
        if not answer.HasField("recommendation"):
            return None
        return converters.from_recommendation(self.spec.space, answer.recommendation)

    @property
    def best_trial(self) -> Trial:
        """The first trial of the configuration that `recommendation` names.

        Raises:
            NotFound: no trial has been completed (`no_completed_trial`).
            Conflict: the study has several objectives (`several_objectives`).
        """
        if len(self.objectives) > 1:
            raise Conflict(
                "several_objectives",
                f"Study {self.name} has {len(self.objectives)} objectives, so there is no single best trial:"
                " use pareto_front().",
            )
        best = self.best_trials
        if not best:
            raise NotFound("no_completed_trial", f"Study {self.name} has no completed trial yet.")
        return best[0]

    @property
    def best_trials(self) -> list[Trial]:
        """The best trial or, with several objectives, the Pareto set; empty before any trial is completed."""
        answer = self._transport.call(self._stub.GetBestTrials, pb.GetBestTrialsRequest(study=self.name))
        return [converters.from_trial(self.spec.space, trial) for trial in answer.trials]

    def pareto_front(self) -> list[Trial]:
        """The trials that no other beats in all objectives; with one objective the best trial alone."""
        return self.best_trials

    def trials(self, states: Sequence[TrialState | str] = ()) -> list[Trial]:
        """The study's trials by number, or those in the given states, without their measurements and logs.

        study.trials(states=["COMPLETED", "INFEASIBLE"])
        """
        request = pb.ListTrialsRequest(study=self.name, page_size=PAGE_SIZE, states=converters.to_trial_states(states))
        found: list[Trial] = []
        while True:
            page = self._transport.call(self._stub.ListTrials, request)
            found.extend(converters.from_trial(self.spec.space, trial) for trial in page.trials)
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    def trial(self, number: int) -> Trial:
        """One trial with its measurements and the end of its log. Raises NotFound."""
        request = pb.GetTrialRequest(study=self.name, trial=_number(number))
        return converters.from_trial(self.spec.space, self._transport.call(self._stub.GetTrial, request))

    def to_dataframe(self) -> "pd.DataFrame":
        """The trials as a pandas DataFrame, a row each: number, state, params.NAME, metrics.NAME, times and reason.

        Raises:
            ImportError: pandas is not installed; `trials()` needs nothing.
        """
        from trimtab.table import to_dataframe

        return to_dataframe(self.spec, self.trials())

    # --- its life

    def pause(self, reason: str = "") -> None:
        """Suggests nothing more until `resume`; results are still taken."""
        self._update(pb.STUDY_STATE_PAUSED, reason)

    def resume(self) -> None:
        """Goes on after `pause`."""
        self._update(pb.STUDY_STATE_ACTIVE, "")

    def stop(self, reason: str = "") -> None:
        """Ends the study for good (ABORTED); agents stop its trials. What was found stays."""
        self._update(pb.STUDY_STATE_ABORTED, reason)

    def complete(self, reason: str = "") -> None:
        """Ends the study as COMPLETED, before its budget is used up; agents stop its trials."""
        self._update(pb.STUDY_STATE_COMPLETED, reason)

    def extend_budget(
        self,
        *,
        max_trials: int | EllipsisType | None = ...,
        max_time: float | EllipsisType | None = ...,
        max_node_hours: float | EllipsisType | None = ...,
    ) -> None:
        """Changes what the search may spend in all, from its beginning; None: no limit. What is left out stays.

            study.extend_budget(max_trials=200)

        Args:
            max_trials: of the search, without those that you added.
            max_time: seconds from the first trial.
            max_node_hours: of the trials' own running time.

        Raises:
            InvalidInput: no more than was spent already.
            Conflict: the search is over (`search_over`).
        """
        given = {"max_trials": max_trials, "max_time": max_time, "max_node_hours": max_node_hours}
        budget, fields = converters.to_budget({key: value for key, value in given.items() if value is not ...})
        request = pb.ExtendBudgetRequest(study=self.name, budget=budget, fields=fields)
        self._keep(self._transport.call(self._stub.ExtendBudget, request))

    def change_space(self, ranges: Mapping[str, object], *, validate_only: bool = False) -> Outside:
        """Gives parameters other ranges while the search goes on.

            study.change_space({"threads": {"min": 4, "max": 64}, "level": {"values": ["O2", "O3"]}})

        Trials keep the values that they had. Those that lie outside now stay in the history, but nothing is learned
        from them and none is recommended; those of them that wait are withdrawn, those that run may finish.

        Args:
            ranges: by parameter: of a number `min` and `max` (one left out stays), of a list of choices all `values`.
            validate_only: change nothing, only say what would lie outside.

        Raises:
            InvalidInput: with `data["field"]` naming what is wrong: a range without the default (`default_outside`), a
                start off the grid (`grid_shifted`), what is no range or a condition's parent
                (`parameter_unchangeable`).
            Conflict: the search is over, or its final check is under way (`search_over`).
        """
        request = pb.ChangeSpaceRequest(
            study=self.name,
            ranges={name: converters.to_range(f"ranges.{name}", given) for name, given in ranges.items()},
            validate_only=validate_only,
        )
        answer = self._transport.call(self._stub.ChangeSpace, request)
        self._keep(answer.study)
        return Outside(answer.finished_outside, answer.running_outside, answer.waiting_outside)

    def watch(self, timeout: float | None = None) -> Iterator[Change]:
        """The study and all its trials as they are, then every change as it happens, until the study has ended.

            for change in study.watch():
                print(change.status.finished_count, [trial.number for trial in change.trials])

        Connects again by itself, and goes on where it was. A study deleted meanwhile ends it as well.

        Raises:
            Timeout: the study had not ended after `timeout` seconds.
        """
        seen = 0

        def next_request() -> pb.WatchStudyRequest:
            return pb.WatchStudyRequest(study=self.name, from_revision=seen)

        until = float("inf") if timeout is None else monotonic() + timeout
        for event in self._transport.stream(self._stub.WatchStudy, next_request, until=until):
            seen = event.study.revision
            self._keep(event.study)
            status = converters.from_status(event.study)
            yield Change(status, tuple(converters.from_trial(self.spec.space, trial) for trial in event.trials))
            # A long history comes in parts, each with the study as it is now: the end is where nothing is left to see.
            if status.state.finished and seen >= self.refresh().revision:
                return

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> StudyState:
        """Waits until the study has ended, as one that runs on agents does by itself; shows its progress.

            state = client.create_study(..., component="gcc-flags", application="kernels", max_trials=30).wait()

        Returns:
            COMPLETED or ABORTED.

        Raises:
            Timeout: the study had not ended after `timeout` seconds. It goes on.
        """
        from trimtab.progress import Progress

        with Progress(self.name, self.spec, enabled=progress) as shown:
            for change in self.watch(timeout):
                for trial in change.trials:
                    shown.update(trial)
        return self.state

    # --- within the package

    @property
    def address(self) -> str:
        """Where the service is."""
        return str(self._transport.address)

    def as_client(self, client_id: str, held: Iterable[int] = ()) -> "Study":
        """This study as another client sees it, one that has the trials numbered `held` in hand."""
        return Study(self._transport, Desk(self._transport, self.name, client_id, held), self._message)

    def before_close(self, last: Callable[[], None]) -> None:
        """Has `last` called before the client of this study closes its connection, while that can still be used."""
        self._transport.before_close(last)

    def _metrics(self, metrics: Metrics) -> dict[str, float]:
        if isinstance(metrics, Mapping):
            return converters.to_metrics(metrics)
        names = [objective.metric for objective in self.objectives]
        if len(names) != 1:
            raise InvalidInput.of("metrics", metrics, f"a dict with values for {', '.join(names)}")
        return converters.to_metrics({names[0]: metrics})

    def _update(self, state: pb.StudyState.ValueType, reason: str) -> None:
        request = pb.UpdateStudyStateRequest(name=self.name, state=state, reason=reason)
        self._keep(self._transport.call(self._stub.UpdateStudyState, request))

    def _keep(self, message: pb.Study) -> None:
        if message.spec != self._message.spec:
            # Read anew when it is next asked for.
            self.__dict__.pop("spec", None)
        self._message = message
        self._exhausted = message.space_exhausted


def _number(trial: Trial | int) -> int:
    return trial.number if isinstance(trial, Trial) else converters.to_int("trial", trial)
