"""A study: ask for trials, tell their results, read the best configurations."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import EllipsisType
from typing import TYPE_CHECKING

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection.client_id import ClientId
from trimtab._internal.messages.status import from_status
from trimtab._internal.study import changes, live, notes, results, trials
from trimtab._internal.study.caller import Caller
from trimtab._internal.study.handle import StudyHandle
from trimtab._internal.study.held_trials import LEASE_SECONDS, HeldTrials
from trimtab._internal.study.watch import watch
from trimtab.best import Best
from trimtab.context import ContextTable
from trimtab.errors import InvalidInput, JsonValue
from trimtab.insight import Insight
from trimtab.live import LiveStatus
from trimtab.method import FinalCheck, ParetoVerdict, PenaltyAdvice, Recommendation, Verdict
from trimtab.objective import Objective
from trimtab.space import Parameter, Params
from trimtab.spec import EarlierTrials, Outside, StudySpec, StudyState, StudyStatus
from trimtab.trial import Measurement, Metrics, Note, Trial, TrialState

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Change:
    """The current status of the study and the trials that changed since the last one."""

    status: StudyStatus
    trials: tuple[Trial, ...]


class Study:
    """A study on the service. `Client.create_study` and `Client.get_study` return it. Thread-safe.

    For example:

        trials = study.ask(4)
        for trial in trials:
            study.tell(trial, {"seconds": measure(**trial.params)})
        print(study.best_trial.params)

    The object stands for this one study: after the study is deleted, calls raise NotFound, also if another study has
    its name by then (`study_replaced`). Forks, copies and pickles are as with `Client`.
    """

    def __init__(self, caller: Caller, held: HeldTrials, message: pb.Study) -> None:
        self._handle = StudyHandle(caller, held, message)
        self._table = results.KeptTable(self._handle)

    def __getstate__(self) -> tuple[Caller, str | None, bytes]:
        handle = self._handle
        own = None if handle.held.client_id is handle.caller.client_id else handle.held.client_id.given
        return handle.caller, own, handle.message.SerializeToString()

    def __setstate__(self, state: tuple[Caller, str | None, bytes]) -> None:
        caller, own, data = state
        message = pb.Study.FromString(data)
        Study.__init__(self, caller, caller.held(message.name, message.uid, own), message)

    def __repr__(self) -> str:
        status = self.status
        return f"<trimtab.Study {self.name!r} {status.state}, {status.finished_count} trials finished>"

    def _repr_html_(self) -> str:
        """Return the state, the verdict and the last trials for notebooks."""
        from trimtab import html

        status = self.refresh()
        verdict = self.verdict if len(self.objectives) == 1 else self.pareto_verdict
        facts = {
            "study": self.name,
            "state": f"{status.state}, {status.finished_count} trials finished",
            "reason": status.reason,
            "algorithm": self.algorithm,
            "verdict": str(verdict or ""),
        }
        last = self.trials()[-html.MOST_TRIALS :]
        rows = [(one.number, str(one.state), one.params, one.metrics) for one in last]
        return html.pairs(facts) + html.table(("trial", "state", "params", "metrics"), rows)

    # --- description and status

    @property
    def name(self) -> str:
        """The name of the study, unique in its tenant."""
        return self._handle.name

    @property
    def uid(self) -> str:
        """The identity of the study. Another study that later has the same name has another uid."""
        return self._handle.uid

    @property
    def spec(self) -> StudySpec:
        """The specification of the study, as of the last call that returned it."""
        return self._handle.spec

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The metrics to minimize or maximize."""
        return self.spec.objectives

    @property
    def client_id(self) -> str:
        """The name under which this object asks for trials."""
        return str(self._handle.held.client_id)

    @property
    def status(self) -> StudyStatus:
        """The progress of the study, as of the last call that returned it; `refresh` reads it again."""
        return from_status(self._handle.message)

    @property
    def state(self) -> StudyState:
        """The state of the study: the same as `status.state`."""
        return self.status.state

    @property
    def algorithm(self) -> str:
        """The algorithm in use. If "auto" has chosen it, `status.algorithm_choice` gives the reason."""
        choice = self.status.algorithm_choice
        return self.spec.algorithm if choice is None else choice.name

    @property
    def space_exhausted(self) -> bool:
        """True if the last ask found no more configurations in the space. `ask` then returns fewer trials, or none."""
        return self._handle.exhausted

    def refresh(self) -> StudyStatus:
        """Read the status of the study from the service and return it."""
        self._handle.refresh()
        return self.status

    def as_file(self) -> str:
        """Return the study file (YAML) that describes the study with its current space and budget."""
        return self._file().text

    def file_content(self) -> dict[str, JsonValue]:
        """Return the content of the study file with all defaults, for programs."""
        content: dict[str, JsonValue] = json.loads(self._file().json)
        return content

    # --- trials that you measure

    def ask(
        self,
        n: int = 1,
        *,
        fixed: Mapping[str, object] | None = None,
        timeout: float | None = None,
        lease: float | None = LEASE_SECONDS,
        context: Mapping[str, object] | None = None,
        schedule_context: bool = False,
    ) -> list[Trial]:
        """Return the next `n` trials to measure. Wait until the algorithm has suggested them.

            [trial] = study.ask()
            trials = study.ask(4, fixed={"alg": "b"})

        If this client_id holds trials that this process does not know (a process crashed and was started again), they
        come first. The list is shorter than `n` only if the space is exhausted; see `space_exhausted`.

        Args:
            n: the number of trials, 1 to 1000.
            fixed: values that these parameters have in all the trials.
            timeout: seconds to wait for the algorithm; None: no limit.
            lease: this process renews the trials while it lives. If it has died, another client gets them after this
                many seconds, 10 or more. A late result still counts if nobody else has reported one. None: the trials
                wait for this client_id, for example because another process tells the results.
            context: the present value of each context variable of the study, in which you will measure the trials.
            schedule_context: True lets the study choose the context of each trial, which is part of its params. Use it
                if your program can set the context.

        Raises:
            InvalidInput: the context is missing or has an unknown value; `data["field"]` names it.
            Timeout: the algorithm is still working. The message names the operation; the next ask returns its trials.
            OperationFailed: the algorithm failed. The message has its reason.
            Conflict: the study is not ACTIVE, its budget is used up, or its trials run on agents.
        """
        return trials.ask(
            self._handle,
            n,
            fixed=fixed,
            timeout=timeout,
            lease=lease,
            context=context,
            schedule_context=schedule_context,
        )

    def tell(
        self,
        trial: Trial | int,
        metrics: Metrics | None = None,
        *,
        infeasible: str | None = None,
        failed: str | None = None,
    ) -> Trial:
        """End a trial with its result: exactly one of `metrics`, `infeasible` and `failed`. Return the trial.

            study.tell(trial, 1.2)                                  # a study with one objective
            study.tell(trial, {"seconds": 1.2, "watts": 80.0})
            study.tell(trial, infeasible="does not compile")        # this configuration cannot work
            study.tell(trial, failed="the disk was full")           # not the configuration's fault

        Telling the same result again changes nothing.

        A NaN or infinite value of an objective, or of a metric in an outcome constraint, makes the trial INFEASIBLE,
        with the metric in its reason. This holds for `optimize` and Ray Tune, too. Other metrics are stored if they are
        finite. A number beyond 1e100 in size is no measurement: it is refused with `metric_too_large`,
        and makes the trial INFEASIBLE in `optimize` and Ray Tune.

        Args:
            trial: the trial or its number.
            metrics: values of all objectives and of all metrics in outcome constraints; other metrics are stored too.
                One number is enough for a study with one objective.
            infeasible: why this configuration cannot work. The trial becomes INFEASIBLE.
            failed: why the measurement failed although the configuration may work. The trial becomes FAILED.

        Raises:
            Conflict: the trial has ended with another result (`trial_already_finished`).
            InvalidInput: a metric is missing or not a number; `data["field"]` names it.
        """
        return trials.tell(self._handle, trial, metrics, infeasible, failed)

    def tell_many(self, results: Iterable[tuple[Trial | int, Metrics]]) -> list[Trial]:
        """End several trials with their metrics in one call; return the trials. Either all results count, or none.

            trials = study.ask(8)
            study.tell_many([(trial, measure(trial.params)) for trial in trials])

        Telling the same results again changes nothing. It is much faster than as many calls of `tell`.

        Args:
            results: 1 to 1,000 trials, or their numbers, each with its metrics as in `tell`.

        Raises:
            Conflict: a trial has ended with another result (`trial_already_finished`).
            InvalidInput: a metric is missing or not a number, or a trial is there twice; `data["field"]` names it.
        """
        return trials.tell_many(self._handle, results)

    def report(self, trial: Trial | int, *, step: int, metrics: Metrics, elapsed: float | None = None) -> Trial:
        """Report metric values of a running trial at a step; return the trial.

        For example:

            trial = study.report(trial, step=3, metrics={"seconds": 2.0})
            if trial.should_prune():
                ...                                                 # the trial has ended: do not tell it

        If a pruning policy of the study stops the trial, the returned trial is PRUNED and has ended.

        Args:
            trial: the trial or its number.
            step: a whole number. The measurement with the highest step is the last one.
            metrics: values by metric, or one number.
            elapsed: the running time of the trial so far, in seconds.

        Raises:
            Conflict: the step was reported before with other values (`step_already_reported`), or the trial has ended.
        """
        return trials.report(self._handle, trial, step, metrics, elapsed)

    def replace_params(self, trial: Trial | int, params: Mapping[str, object]) -> Trial:
        """Replace the configuration of a running trial by the one that you really measure; return the trial.

            [trial] = study.ask()                       # kind = "svm", cost = 2.0, depth = 7
            trial = study.replace_params(trial, {"kind": "svm", "cost": 2.0})
            study.tell(trial, 0.31)

        Use it if your program chooses its parameters while it runs, and has used only some of the suggested values, or
        other ones. A trial may lack parameters that are `optional`.

        Raises:
            InvalidInput: a value is outside the space; `data["field"]` names it.
            Conflict: the trial has ended, belongs to a final check (`trial_of_check`), or runs on an agent.
        """
        return trials.replace_params(self._handle, trial, params)

    def stop_trial(self, trial: Trial | int, reason: str = "") -> Trial:
        """Stop a running trial early (PRUNED) and return it. Its last measurement counts as a bound."""
        return trials.stop(self._handle, trial, reason)

    def add_trial(
        self,
        params: Mapping[str, object],
        metrics: Metrics | None = None,
        *,
        infeasible: str | None = None,
        failed: str | None = None,
        pruned: str | None = None,
        measurements: Iterable[Measurement] = (),
        request_id: str | None = None,
    ) -> Trial:
        """Add a configuration that you have run yourself, with exactly one result; return it as a trial.

            study.add_trial({"x": 0.5, "n": 8}, {"seconds": 1.4})
            study.add_trial({"x": 0.5, "n": 64}, infeasible="out of memory")

        The results are as in `tell`. `pruned` says why you have stopped the run early: the last of the `measurements`,
        which are those at the steps of the trial, then counts as a bound.

        Repeated calls with the same `request_id` (1 to 100 characters) return the same trial. Use it in programs that
        cannot know after a crash whether they have added the trial.
        """
        return trials.add(self._handle, params, metrics, infeasible, failed, pruned, measurements, request_id)

    def enqueue(self, params: Mapping[str, object], *, count: int = 1, request_id: str | None = None) -> list[Trial]:
        """Have a configuration of your choice measured next, `count` times; return its trials.

            study.enqueue({"x": 0.5, "n": 8}, count=3)              # three times, for the noise

        Active parameters that `params` leaves out take their defaults. The next ask returns the trials, or the next
        free agent runs them. Trials that already wait for an agent stay ahead of them. They count against the budget.
        Repeated calls with the same `request_id` (1 to 100 characters) return the same trials.

        Raises:
            InvalidInput: a value is outside the space; `data["field"]` names it.
            Conflict: the study has ended (`study_not_active`), or its budget has too few trials left
                (`budget_exhausted`).
        """
        return trials.enqueue(self._handle, params, count, request_id)

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
        callbacks: "Sequence[Callable[[Study, Trial], None]]" = (),
    ) -> None:
        """Ask for trials, measure them with `fn` and tell the results until the budget or `n_trials` is used up.

        For example:

            def fn(params: dict[str, ...]) -> float:
                return run_program(**params)

            study.optimize(fn, n_trials=50, parallel=4)

        If the study has context variables, it chooses the context of each trial. The values are among the parameters,
        and `fn` sets them.

        `fn` gets the parameters and returns the value of the objective, or a dict of metrics. If it raises
        `trimtab.Infeasible`, or returns NaN or infinity (see `tell`), the trial becomes INFEASIBLE. Any other exception
        makes the trial FAILED, with the exception as its reason. So does a result that `tell` refuses, such as None:
        the reason names the metric. The log (`trimtab`) has the traceback of the first failure, and at the end the
        number of failures.

        While the study is paused, no trial starts, and the run waits until the study is resumed.

        After Ctrl-C, no new trial starts, trials that run in threads finish, and no trial stays open. A second Ctrl-C
        marks the running trials as FAILED and does not wait for them.

        Args:
            fn: called in the calling thread, or in `parallel` threads if `parallel` is above 1. For a function with
                further arguments, pass `trimtab.with_arguments(fn, data, repeats=3)`, which type checkers understand.
            n_trials: the number of trials; None: until the study's budget is used up or its space is exhausted.
            parallel: how many trials run at the same time.
            timeout: seconds after which no further trial starts.
            progress: show a progress bar with the best single run so far.
            fixed: values that these parameters have in all trials.
            catch: exception classes of `fn` that do not end the run. Other exceptions are raised after the running
                trials have finished. After ten failed trials in a row the last exception is raised in any case,
                because `fn` is probably broken.
            callbacks: called in the calling thread with the study and each trial whose result was told, for example
                `trimtab.integrations.mlflow.MlflowLogger`. An exception ends the run: it is raised after the running
                trials have finished.
        """
        from trimtab._internal.study.optimize import Run

        Run(
            self,
            fn,
            n_trials=n_trials,
            parallel=parallel,
            timeout=timeout,
            progress=progress,
            fixed=fixed,
            catch=catch,
            callbacks=[partial(callback, self) for callback in callbacks],
        ).run()

    # --- progress of a study that others measure

    def watch(self, timeout: float | None = None) -> Iterator[Change]:
        """Yield the study with all its trials, then every change, until the study has ended.

            for change in study.watch():
                print(change.status.finished_count, [trial.number for trial in change.trials])

        It reconnects by itself and misses no change. It also ends if the study is deleted.

        Raises:
            Timeout: the study had not ended after `timeout` seconds.
        """
        for status, changed in watch(self._handle, timeout):
            yield Change(status, changed)

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> StudyState:
        """Wait until the study has ended, and show its progress. For studies whose trials run on agents.

        A line says that the study is paused, or why its trials wait for an agent.

            state = client.create_study(..., component="gcc-flags", application="kernels", max_trials=30).wait()

        Returns:
            COMPLETED or ABORTED.

        Raises:
            Timeout: the study had not ended after `timeout` seconds. The study continues.
        """
        from trimtab.progress import Progress

        with Progress(self.name, self.spec, enabled=progress) as shown:
            for change in self.watch(timeout):
                for trial in change.trials:
                    shown.update(trial)
                shown.explain(change.status)
        return self.state

    # --- trials and notes

    def trials(self, states: Sequence[TrialState | str] = ()) -> list[Trial]:
        """Return the trials by number, without measurements and logs. `states` selects trials by state.

        study.trials(states=["COMPLETED", "INFEASIBLE"])
        """
        return trials.read_all(self._handle, states)

    def trial(self, number: int) -> Trial:
        """Return one trial with its measurements and the end of its log. Raises NotFound."""
        return trials.read(self._handle, number)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return the trials as a pandas DataFrame.

        Each row is a trial. The columns are number, state, params.NAME, metrics.NAME, the times and the reason.

        Raises:
            ImportError: pandas is not installed. `trials()` does not need it.
        """
        from trimtab._internal.study.trial_rows import to_dataframe

        return to_dataframe(self.spec, self.trials())

    def set_user_attr(self, trial: Trial | int, name: str, value: object) -> Note:
        """Keep a value of your own with a trial, and return the trial's note. None removes the value.

        For example:

            study.set_user_attr(trial, "power", 215.5)

        The value is a number, a text or a bool. It changes nothing that is measured, at any time, also after the end
        of the trial. The console and `Study.notes` show it.

        Raises:
            InvalidInput: the name has other characters than letters, digits, spaces and . _ : / -, or the value is too
                long.
        """
        return self.note(trial, attributes={name: value})

    def note(
        self,
        trial: Trial | int | None = None,
        text: str | None = None,
        *,
        tags: Sequence[str] | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> Note:
        """Change the note of a trial, or without a trial of the study, and return it.

        Args:
            trial: the trial or its number.
            text: Markdown, which replaces the text of the note. None keeps it.
            tags: replace the tags of the trial. None keeps them.
            attributes: values that are added to those of the note. The value None removes one.
        """
        return notes.change(self._handle, trial, text, tags, attributes or {})

    def notes(self) -> list[Note]:
        """Return the note of the study and those of its trials, at most 1,000, the latest change first."""
        return notes.read_all(self._handle)

    # --- results

    @property
    def recommendation(self) -> Recommendation | None:
        """The recommended configuration and its expected value; None with several objectives or without a result.

        For example:

            found = study.recommendation
            print(found.params, found.value, found.low, found.high)
        """
        return results.recommendation(self._handle)

    @property
    def best_trial(self) -> Trial:
        """The first trial of the configuration in `recommendation`.

        Raises:
            NotFound: no trial is COMPLETED yet (`no_completed_trial`).
            Conflict: the study has several objectives (`several_objectives`): use `pareto_front`. Or it has a context
                (`several_contexts`): use `best`.
        """
        return results.best_trial(self._handle)

    @property
    def best_trials(self) -> list[Trial]:
        """The best trial or, with several objectives, the Pareto set; empty if no trial is COMPLETED."""
        return results.best_trials(self._handle)

    def pareto_front(self) -> list[Trial]:
        """Return the trials that no other trial dominates; with one objective, only the best trial."""
        return self.best_trials

    @property
    def verdict(self) -> Verdict | None:
        """The knowledge of the gain; None with several objectives or without a result.

        For example:

            print(study.verdict)    # faster by 12 % (95 %: 9 to 15)
            if study.verdict.proven: ...
        """
        return results.verdict(self._handle)

    @property
    def pareto_verdict(self) -> ParetoVerdict | None:
        """The verdict of the final check with several objectives; None before the check is over.

        For example:

            study = client.create_study("both", ..., final_check=True)
            study.optimize(fn)
            print(study.pareto_verdict)     # better in every objective: hypervolume 2.1 % (95 %: 0.8 to 3.9)
            for member in study.pareto_verdict.members:
                print(member.params, [(one.metric, one.gain, one.low, one.high) for one in member.objectives])
        """
        return results.pareto_verdict(self._handle)

    @property
    def penalties(self) -> PenaltyAdvice | None:
        """How to report configurations that do not work, if values look like penalties; otherwise None.

        For example:

            print(study.penalties)  # 4 values look like penalties: report these trials as infeasible. ...
            print(study.penalties.call)     # study.tell(trial, infeasible='does not work')
        """
        return results.penalties(self._handle)

    @property
    def advice(self) -> str:
        """Advice if all configurations gave the same result; empty for other studies."""
        return results.advice(self._handle)

    def context_table(self) -> ContextTable:
        """Return the recommendations of a study with a context, one row for each context, from the service.

        For example:

            for row in study.context_table().rows:
                print(row.context, row.settings, row.verdict)
        """
        return results.context_table(self._handle)

    @property
    def best(self) -> Best:
        """The settings to use. `study.best.render("env")` returns them in the form in which the program takes them.

            print(study.best.render("env"))                         # OMP_NUM_THREADS=8
            study.best.render("template").write("/etc/redis")       # writes /etc/redis/redis.conf
            settings = study.best({"load": "high", "hit": 0.83}).settings

        `study.best(context)` returns the recommendation of a study with a context.
        """
        return Best(self._handle, self._table)

    def prospects(self, timeout: float = 120.0) -> dict[float, float]:
        """Return the probability that some configuration is better than the default, by the least gain.

            study.prospects()                                       # {0.05: 0.97, 0.1: 0.91, 0.2: 0.3}

        Gains are shares of the default's value. They say whether it is worth to tune the system further. A worker
        computes them from 8 finished trials on, one of which has to be the default. The result is empty before that,
        and for a study with several objectives, outcome constraints or a context.

        Raises:
            Timeout: no worker has computed them after `timeout` seconds.
            TrimtabError: the computation failed (`prospects_failed`).
        """
        return results.prospects(self._handle, timeout)

    def insight(self, timeout: float = 120.0) -> Insight | None:
        """Return what the trials say about the parameters; None if there are too few results.

            for effect in study.insight().objectives[0].effects:
                print(effect.parameter, effect.importance, effect.levels, effect.average)

        A worker computes it if trials have finished since the last time.

        Raises:
            Timeout: no worker has computed it after `timeout` seconds (`insight_not_computed`).
            TrimtabError: the computation failed (`insight_failed`).
        """
        return results.insight(self._handle, timeout)

    def importance(self, metric: str | None = None, timeout: float = 120.0) -> dict[str, float]:
        """Return the share of an objective's variance that each parameter explains alone, the largest first.

            study.importance()                                      # {"block": 0.61, "threads": 0.22, "huge": 0.01}

        Args:
            metric: the objective. Default: the first one.
            timeout: as in `insight`.

        Returns:
            Shares from 0 to 1 by parameter; empty if there are too few results.

        Raises:
            InvalidInput: `metric` is no objective of the study.
            Timeout, TrimtabError: as `insight`.
        """
        names = [objective.metric for objective in self.objectives]
        chosen = names[0] if metric is None else metric
        if chosen not in names:
            raise InvalidInput.of("metric", metric, f"one of the objectives: {', '.join(names)}")
        found = self.insight(timeout)
        known = [] if found is None else [one for one in found.objectives if one.metric == chosen]
        return {effect.parameter: effect.importance for one in known for effect in one.effects}

    # --- changes of the study

    def live_status(self) -> LiveStatus:
        """Return what is in force on the system of a live study, what waits for people, and what it has cost.

        Raises:
            NotFound: the study is not live (`not_live`).
        """
        return live.status(self._handle)

    def approve_plan(self, trial: int, reason: str = "") -> LiveStatus:
        """Approve the plan of a live trial that waits, and return the state afterwards. Only administrators may.

        Raises:
            Conflict: the plan was decided otherwise (`plan_decided`) or has expired (`plan_expired`), or another person
                must approve it too (`second_person`).
        """
        return live.decide(self._handle, trial, reason, approve=True)

    def decline_plan(self, trial: int, reason: str = "") -> LiveStatus:
        """Decline the plan of a live trial that waits. Another candidate takes its place. Raises as `approve_plan`."""
        return live.decide(self._handle, trial, reason, approve=False)

    def stop_live(self, reason: str = "", *, leave_kept: bool = False) -> LiveStatus:
        """Pause a live study and end its running trials. Agents put the settings before the first trial back.

        Args:
            reason: why, for people.
            leave_kept: leave the settings in force that earlier trials have kept.
        """
        return live.stop(self._handle, reason, leave_kept=leave_kept)

    def pause(self, reason: str = "") -> None:
        """Pause the study: it suggests no trials until `resume`, but still accepts results."""
        changes.set_state(self._handle, StudyState.PAUSED, reason)

    def resume(self) -> None:
        """Resume a paused study."""
        changes.set_state(self._handle, StudyState.ACTIVE, "")

    def stop(self, reason: str = "") -> None:
        """End the study for good (ABORTED). Agents stop its trials. Its results stay."""
        changes.set_state(self._handle, StudyState.ABORTED, reason)

    def complete(self, reason: str = "") -> None:
        """End the study as COMPLETED before its budget is used up. Agents stop its trials."""
        changes.set_state(self._handle, StudyState.COMPLETED, reason)

    def extend_budget(
        self,
        *,
        max_trials: int | EllipsisType | None = ...,
        max_time: float | EllipsisType | None = ...,
        max_node_hours: float | EllipsisType | None = ...,
    ) -> None:
        """Change the total budget of the search. None removes a limit; omitted limits stay.

            study.extend_budget(max_trials=200)

        A COMPLETED study whose budget now holds more is ACTIVE again and continues its search until the budget is
        spent; stopping rules do not end it again. Its verdict stays until a new final check is over.

        Args:
            max_trials: number of trials of the search, without trials that you added.
            max_time: seconds from the first trial, without time for which the study was COMPLETED.
            max_node_hours: running time of the trials, in node-hours.

        Raises:
            InvalidInput: a limit is below what the search has already used.
            Conflict: a final check is in progress or the study is ABORTED (`search_over`), or the study has measured
                its whole space (`space_exhausted`).
        """
        limits = {"max_trials": max_trials, "max_time": max_time, "max_node_hours": max_node_hours}
        changes.extend_budget(self._handle, limits)

    def check(
        self,
        *,
        width: float | None = None,
        max_trials: int | None = None,
        level: float | None = None,
        effects: int | None = None,
    ) -> None:
        """Begin a final check of a COMPLETED study. The study is ACTIVE until the check is over.

            study.check(max_trials=40)
            study.optimize(fn)                      # measures its trials; agents do so by themselves
            print(study.verdict)

        The service chooses the configuration to check from all results; with several objectives, members of the Pareto
        set. Only the new check's trials count for its verdict, which then replaces the earlier one. An argument that is
        None has the value of the study's `final_check`, or the service's default. A check that is under way stays as it
        is.

        Args:
            width: target width of the confidence interval, as a fraction of the default's value.
            max_trials: maximum number of trials of the check.
            level: confidence level of the interval, for example 0.95.
            effects: maximum number of further trials that find which changes carry a proven gain: 0, or 16 or more.

        Raises:
            InvalidInput: a value is out of its range, or the study has no default.
            Conflict: the search is not over (`search_not_over`), a check with other settings is under way
                (`check_under_way`), or the study is ABORTED (`invalid_step`).
        """
        changes.check(self._handle, FinalCheck(width, max_trials, level, effects))

    def change_space(self, ranges: Mapping[str, object], *, validate_only: bool = False) -> Outside:
        """Change the ranges of parameters while the search runs; return how many trials lie outside.

            study.change_space({"threads": {"min": 4, "max": 64}, "level": {"values": ["O2", "O3"]}})

        Trials keep their values. Trials outside the new ranges stay in the history, but the algorithm does not learn
        from them and none is recommended. Waiting trials outside are withdrawn; running trials outside may finish.

        Args:
            ranges: by parameter: `min` and `max` of a number (an omitted end stays), or all `values` of a list.
            validate_only: change nothing; only return how many trials would lie outside.

        Raises:
            InvalidInput: `data["field"]` names the parameter: its range excludes the default (`default_outside`), its
                start is off the grid (`grid_shifted`), or it has no range or is the parent of a condition
                (`parameter_unchangeable`).
            Conflict: the search has ended, or its final check is in progress (`search_over`).
        """
        return changes.change_space(self._handle, ranges, validate_only)

    def edit_space(
        self,
        *,
        add: Sequence[Parameter] = (),
        remove: Sequence[str] | Mapping[str, object] = (),
        fix: Mapping[str, object] | None = None,
        free: Sequence[str] = (),
        budget: Mapping[str, float | None] | None = None,
        validate_only: bool = False,
        request_id: str | None = None,
    ) -> EarlierTrials:
        """Add, remove, fix and free parameters while the search runs; return how the trials so far count.

            print(study.edit_space(add=[trimtab.Int("cache", 1, 64, default=8)], fix={"threads": 16}))
            # 31 of 40 trials are used, 31 of them with cache = 8 in place of a value that they lack;
            # 9 had another value of threads and are left out.
            study.edit_space(free=["threads"], remove=["level"])

        Trials keep their configurations. A trial that lacks an added parameter counts with its default. A trial with
        another value of a fixed or removed parameter is left out: the algorithm does not learn from it, and it is not
        recommended. Running and waiting trials finish as they are, and count by the same rule.

        A fixed parameter has the same value in all later trials. Later trials do not have a removed parameter, so the
        program must use the stated value without being given it.

        Args:
            add: new parameters, each with a default: the value that it had in the trials so far.
            remove: names of parameters, or a dict with the values that they have from now on; None or no value: the
                default.
            fix: values by parameter.
            free: names of fixed parameters, which get their whole range again.
            budget: limits that change at the same time, as in `extend_budget`. A COMPLETED study needs more budget.
            validate_only: change nothing; only return how the trials would count.
            request_id: repeated calls with the same value (1 to 100 characters) change the space once.

        Raises:
            InvalidInput: `data["field"]` names the parameter: it is unknown (`unknown_parameter`), its value in earlier
                trials is not known (`default_needed`) or another one (`value_differs`), a condition or constraint names
                it (`parameter_in_use`), or nothing is left to search (`nothing_to_search`).
            Conflict: the search has ended, or its final check is in progress (`search_over`).
        """
        return changes.edit_space(
            self._handle,
            add=add,
            remove=remove,
            fix=fix,
            free=free,
            budget=budget,
            validate_only=validate_only,
            request_id=request_id,
        )

    # --- for this package only

    @property
    def _address(self) -> str:
        """The address of the service."""
        return str(self._handle.transport.address)

    def _as_client(self, client_id: str, held: Iterable[int] = (), lease: float | None = LEASE_SECONDS) -> "Study":
        """Return this study for another client, which already holds the trials with the numbers `held`.

        Their leases are renewed for `lease` seconds; None: they have none.
        """
        caller = self._handle.caller
        mine = HeldTrials(caller.transport, self.name, self.uid, ClientId(client_id), held, lease)
        return Study(caller, mine, self._handle.message)

    def _before_close(self, last: Callable[[], None]) -> None:
        """Call `last` before the client closes its connection, while the connection still works."""
        self._handle.transport.before_close(last)

    def _file(self) -> pb.GetStudyFileResponse:
        return self._handle.call(self._handle.stub.GetStudyFile, pb.GetStudyFileRequest(study=self.name))
