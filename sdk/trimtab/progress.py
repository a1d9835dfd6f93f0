"""A progress bar with the best single run so far. Without a terminal, a line for each improvement.

In both forms, a line says that the study is paused, or why its trials wait.
"""

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from trimtab.objective import Objective
from trimtab.spec import StudySpec, StudyState, StudyStatus
from trimtab.terminal_console import TerminalConsole
from trimtab.trial import Trial, TrialState


class Progress:
    """A context manager that shows the finished trials and the best single run on standard error.

    `total` is the maximum number of trials; the default is the study's budget.
    """

    def __init__(self, name: str, spec: StudySpec, *, total: int | None = None, enabled: bool = True) -> None:
        # Single runs are compared if there is one objective, and no context in which its values differ.
        self._objective = spec.objectives[0] if len(spec.objectives) == 1 and not spec.context else None
        self._best: tuple[float, int] | None = None
        self._seen: set[int] = set()
        self._checks: set[int] = set()
        self._bad = 0
        most = spec.final_check.max_trials if spec.final_check else None
        self._most_checks = "" if most is None else f" of {most}"
        self._open: dict[int, Trial] = {}
        self._notice = ""
        self._console = TerminalConsole(stderr=True, quiet=not enabled)
        limit = "" if spec.max_time is None else f"of {spec.max_time:.0f} s "
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(separator=" of "),
            TextColumn("{task.fields[checked]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[limit]}{task.fields[best]}{task.fields[bad]}", markup=False),
            console=self._console,
            # Without a terminal the bar would be written once to the log file at its end.
            disable=not (enabled and (self._console.is_terminal or self._console.is_jupyter)),
        )
        self._task = self._bar.add_task(
            name, total=spec.max_trials if total is None else total, limit=limit, best="", bad="", checked=""
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, trial: Trial) -> None:
        """Count a trial once, when it has finished."""
        if not trial.state.finished:
            self._open[trial.number] = trial
            return
        self._open.pop(trial.number, None)
        if trial.number in self._seen:
            return
        if trial.origin == "check":
            self._checks.add(trial.number)
            self._bar.update(self._task, checked=f", then check {len(self._checks)}{self._most_checks}")
            return
        self._seen.add(trial.number)
        if trial.state in (TrialState.FAILED, TrialState.INFEASIBLE):
            self._bad += 1
        if trial.state is TrialState.COMPLETED and not trial.breaks and self._objective is not None:
            self._look_at(trial, self._objective)
        self._bar.update(self._task, completed=len(self._seen), bad=f"  {self._bad} failed" if self._bad else "")

    def explain(self, status: StudyStatus) -> None:
        """Print why the study does not proceed, once for each reason, and that it continues."""
        notice = self._obstacle(status)
        if notice != self._notice and not status.state.finished:
            self._console.print(notice or "The study continues.", markup=False, highlight=False, soft_wrap=True)
        self._notice = notice

    def _obstacle(self, status: StudyStatus) -> str:
        """Return why no trial runs; empty if one does or no reason is known."""
        if status.state is StudyState.PAUSED:
            return f"PAUSED: {status.reason}" if status.reason else "PAUSED"
        if any(trial.state is TrialState.ACTIVE for trial in self._open.values()):
            return ""
        waiting = (self._open[number] for number in sorted(self._open))
        return next((f"Trial {trial.number} waits: {trial.reason}" for trial in waiting if trial.reason), "")

    def _look_at(self, trial: Trial, objective: Objective) -> None:
        value = trial.metrics.get(objective.metric)
        if value is None or (self._best is not None and not objective.better(value, self._best[0])):
            return
        self._best = (value, trial.number)
        best = f"best single run {value:.6g} {objective.unit}".rstrip() + f" (trial {trial.number})"
        self._bar.update(self._task, best=best)
        if self._bar.disable:
            line = f"trial {trial.number}: {objective.metric} {value:.6g} {objective.unit}".rstrip()
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
