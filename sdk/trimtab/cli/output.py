"""The output of the commands: results on standard output, messages on standard error."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from trimtab.errors import TrimtabError
from trimtab.objective import Maximize, Objective
from trimtab.trial import Trial, TrialState

if TYPE_CHECKING:
    from trimtab.context import ContextRow, ContextTable
    from trimtab.method import Effects, ObjectiveGain, ParetoVerdict, Verdict
    from trimtab.study import Study

# The place of the console's address in an address of a page. The command line knows the address of gRPC alone.
CONSOLE = "CONSOLE"

Json: TypeAlias = Mapping[str, object] | Sequence[object]

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

# gRPC's words for an answer of a web server that does not speak HTTP/2.
WEB_SERVER = "http1.x server"

# How many different reasons of failures are printed.
MOST_REASONS = 3

# How many trials a table has as columns.
SIDE_BY_SIDE = 4

# What to do about an error, by its code. The messages of other codes already say it.
ADVICE = {
    "unauthenticated": "Log in again: trimtab login ADDRESS",
    "invalid_token": "Log in again: trimtab login ADDRESS",
    "token_expired": "Log in again: trimtab login ADDRESS",
    "revoked": "Log in again: trimtab login ADDRESS",
    "tenant_required": "Choose one: trimtab login ADDRESS --tenant NAME, or TRIMTAB_TENANT=NAME",
    "study_not_found": "To list the names: trimtab study list",
    "study_exists": "Choose another name, or continue that study with --load-if-exists",
    "component_not_found": "To list what agents offer: trimtab agent list",
}


class Commands(TyperGroup):
    """A command group that prints expected errors without a traceback and exits with code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except TrimtabError as error:
            say_error(error)
            raise typer.Exit(1) from error
        except BrokenPipeError:  # the reader, for example `head`, has closed the pipe
            raise typer.Exit(1) from None


def say_error(error: TrimtabError) -> None:
    """Print the error and, if known, what to do next."""
    err.print(
        Text.assemble(("error: ", "bold red"), " ".join(error.message.split()), f" [{error.code}]"), soft_wrap=True
    )
    if WEB_SERVER in error.message:
        err.print(
            "A web server answers at this address, perhaps the console. Use the port of gRPC, 8471 by default;"
            " `trimtab-service up` prints it after `grpc=`.",
            markup=False,
            soft_wrap=True,
        )
    if error.code in ADVICE:
        err.print(ADVICE[error.code], markup=False, soft_wrap=True)
    if error.docs:
        err.print(f"Documentation: {CONSOLE}{error.docs}", markup=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a message on standard error."""
    err.print(text, markup=False, soft_wrap=True)


def print_json(content: Json) -> None:
    """Print JSON for programs."""
    typer.echo(to_json(content))


def to_json(content: Json) -> str:
    """Return indented JSON."""
    return json.dumps(content, indent=2, default=plain)


def print_json_line(content: Json) -> None:
    """Print one line of JSON."""
    typer.echo(json.dumps(content, default=plain))


def table(*columns: str) -> Table:
    """Return an empty table with these columns."""
    return Table(*columns, box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)


def study_json(study: "Study") -> dict[str, object]:
    """Return the status of a study as JSON."""
    status = study.status
    reported = {field.name: getattr(status, field.name) for field in fields(status)}
    choice = status.algorithm_choice
    reported["algorithm_choice"] = None if choice is None else asdict(choice)
    reported["started_from"] = [asdict(one) for one in status.started_from]
    reported["space_edits"] = [asdict(one) for one in status.space_edits]
    return {"name": study.name, **reported}


def result_json(study: "Study") -> dict[str, object]:
    """Return the verdict and the best trials of a study as JSON."""
    verdict, pareto = study.verdict, study.pareto_verdict
    return {
        "verdict": None if verdict is None else asdict(verdict),
        "pareto_verdict": None if pareto is None else asdict(pareto),
        "best": [trial_json(trial) for trial in study.best_trials],
        "failures": [{"reason": reason, "trials": trials} for reason, trials in common_failures(study)],
    }


def say_start(study: "Study") -> None:
    """Print how many configurations come from each earlier study."""
    for one in study.status.started_from:
        outside = f"; {one.passed_over} lie outside the new space and are skipped" if one.passed_over else ""
        say(f"Started from {one.study}: {one.taken} of its best configurations are measured first{outside}.")


def trial_json(trial: Trial) -> dict[str, object]:
    """Return a trial as JSON, without its measurements and log."""
    skipped = ("study", "measurements", "log")
    return {field.name: getattr(trial, field.name) for field in fields(trial) if field.name not in skipped}


def full_json(study: "Study", trials: Sequence[Trial]) -> dict[str, object]:
    """Return a study with its specification (in the form of a study file) and its trials as JSON."""
    return {
        **study_json(study),
        "spec": study.file_content(),
        "trials": [trial_json(trial) for trial in trials],
    }


def goals(study: "Study") -> str:
    """Return the objectives as text."""
    return ", ".join(
        f"{'maximize' if isinstance(objective, Maximize) else 'minimize'} {objective.metric}"
        + (f" ({objective.unit})" if objective.unit else "")
        for objective in study.objectives
    )


def metrics(study: "Study", trial: Trial) -> str:
    """Return a trial's objective values as text."""
    return ", ".join(
        f"{objective.metric} {trial.metrics[objective.metric]:.6g} {objective.unit}".rstrip()
        for objective in study.objectives
        if objective.metric in trial.metrics
    )


def print_best(study: "Study") -> bool:
    """Print the best trial or the Pareto front, with parameters. Return whether there is one."""
    best = study.best_trials
    if not best:
        say_none(study)
        return False
    if study.spec.context:
        print_contexts(study.context_table())
        return True
    verdict = study.verdict
    if verdict is not None:
        out.print(f"Verdict: {certain(verdict)}", markup=False, soft_wrap=True)
        out.print(f"Recommended: {expected(study.objectives[0], verdict)}", markup=False, soft_wrap=True)
        _print_doubts(verdict)
        chosen = table("parameter", "value")
        for name, value in best[0].params.items():
            chosen.add_row(Text(name), Text(shown(value)))
        out.print(chosen)
        if verdict.effects is not None:
            _print_effects(verdict.effects)
        return True
    pareto = study.pareto_verdict
    if pareto is not None:
        _print_members(study, pareto)
    out.print(f"Pareto front: {len(best)} trials")
    default = next((trial for trial in study.trials(states=[TrialState.COMPLETED]) if trial.origin == "default"), None)
    columns = []
    if default is not None and default not in best:
        columns.append((f"{default.number} (default)", default))
    for trial in best:
        is_default = default is not None and trial.params == default.params
        columns.append((f"{trial.number} (default)" if is_default else str(trial.number), trial))
    _print_trials(study, columns)
    return True


def print_contexts(found: "ContextTable") -> None:
    """Print the recommendations of a study with a context, a row for each context."""
    contexts = list(found.rows[0].context)
    settings = list(dict.fromkeys(name for row in found.rows for name in row.settings))
    shown_table = table(*contexts, *settings, "verdict")
    for row in found.rows:
        cells = [shown(row.context[name]) for name in contexts]
        cells += [shown(row.settings[name]) if name in row.settings else "" for name in settings]
        shown_table.add_row(*map(Text, cells), Text(_verdict_of(row)))
    out.print(shown_table)


def _verdict_of(row: "ContextRow") -> str:
    text = "not measured yet" if row.verdict is None else row.verdict.text
    return f"default: {text}" if row.is_default else text


def _print_trials(study: "Study", trials: Sequence[tuple[str, Trial]]) -> None:
    """Print trials with their titles as rows or, where these would be too wide, as columns of several tables."""
    metrics = [objective.metric for objective in study.objectives]
    names = [parameter.name for parameter in study.spec.space]

    def cells(trial: Trial) -> list[Text]:
        values = [f"{trial.metrics[metric]:.6g}" if metric in trial.metrics else "" for metric in metrics]
        return [Text(text) for text in (*values, *(shown(trial.params.get(name, "")) for name in names))]

    wide = table("trial", *metrics, *names)
    for title, trial in trials:
        wide.add_row(Text(title), *cells(trial))
    if out.measure(wide, options=out.options.update(width=10_000)).maximum <= out.width:
        out.print(wide)
        return
    for first in range(0, len(trials), SIDE_BY_SIDE):
        some = trials[first : first + SIDE_BY_SIDE]
        high = table("trial", *(title for title, _ in some))
        for name, *values in zip([*metrics, *names], *(cells(trial) for _, trial in some), strict=True):
            high.add_row(Text(name), *values)
        out.print(high)


def say_none(study: "Study") -> None:
    """Print that the study has no result, and the commonest reasons."""
    if study.trials(states=[TrialState.COMPLETED]):
        say("No completed trial satisfies the outcome constraints.")
        return
    say("No trial has been completed.")
    failures = common_failures(study)
    if not failures:
        return
    say("The commonest reasons:" if len(failures) > 1 else "The reason:")
    for reason, trials in failures:
        say(f"  {trials} trial{'s' if trials != 1 else ''}: {reason}")
    say(f"To read the output of a trial: trimtab trial log {study.name} NUMBER")


def common_failures(study: "Study") -> list[tuple[str, int]]:
    """Return the commonest reasons of trials that did not work, each with its number of trials."""
    failed = study.trials(states=[TrialState.FAILED, TrialState.INFEASIBLE])
    reasons = Counter(trial.reason.strip() or f"{trial.state} without a reason" for trial in failed)
    return reasons.most_common(MOST_REASONS)


def certain(verdict: "Verdict") -> str:
    """Return the text of a verdict, which says itself that a gain is not proven, with the word if it is."""
    return f"proven: {verdict.text}" if verdict.proven else verdict.text


def _print_doubts(verdict: "Verdict | ParetoVerdict") -> None:
    if verdict.doubtful:
        out.print(doubts(verdict), markup=False, soft_wrap=True)
        say("To see why, read the column 'doubt' of `trimtab study export`.")


def _print_members(study: "Study", verdict: "ParetoVerdict") -> None:
    """Print the verdict with several objectives, and the gains of the members of the Pareto set."""
    out.print(f"Verdict: {verdict.text}", markup=False, soft_wrap=True)
    _print_doubts(verdict)
    if not verdict.members:
        return
    out.print(f"Gains over the default, all intervals at once with {100 * verdict.confidence:g} %:", markup=False)
    names = [parameter.name for parameter in study.spec.space]
    rows = table("runs", *(objective.metric for objective in study.objectives), *names)
    for one in verdict.members:
        values = [Text(shown(one.params.get(name, ""))) for name in names]
        runs = f"{one.runs}, {one.broken} broke a constraint" if one.broken else str(one.runs)
        rows.add_row(runs, *(_gain(gain) for gain in one.objectives), *values)
    out.print(rows)


def _gain(one: "ObjectiveGain") -> str:
    if one.gain is None or one.low is None or one.high is None:
        return "-"
    return f"{_percent(one.gain)} % ({_percent(one.low)} to {_percent(one.high)})"


def _print_effects(effects: "Effects") -> None:
    """Print which changes carry the gain, and the smallest configuration that keeps it."""
    out.print(f"Changes that matter: {effects.text}", markup=False, soft_wrap=True)
    rows = table("parameter", "default", "found", "effect in %", "")
    rows.columns[0].overflow = "fold"  # a cut name cannot be copied
    rows.columns[3].no_wrap = True
    for one in effects.parameters:
        together = f" (together with {', '.join(one.together)})" if one.together else ""
        rows.add_row(
            Text(one.name),
            Text("-" if one.default is None else shown(one.default)),
            Text(shown(one.found)),
            f"{_percent(one.effect)} ({_percent(one.low)} to {_percent(one.high)})",
            Text((("matters" if one.low > 0 else "harms") if one.matters else "none proven") + together),
        )
    out.print(rows)
    smallest = effects.smallest
    if smallest is not None:
        changed = [one.name for one in effects.parameters if smallest.params.get(one.name) not in (None, one.default)]
        values = ", ".join(f"{name} {shown(smallest.params[name])}" for name in changed)
        gain = f"{_percent(smallest.gain)} % ({_percent(smallest.low)} to {_percent(smallest.high)})"
        text = f"Smallest configuration that keeps the gain, {gain}: {values}, the rest as in the default"
        out.print(text, markup=False, soft_wrap=True)


def _percent(share: float) -> str:
    """Return percents as the service writes them: one decimal, and whole ones from 100 % on."""
    return f"{100 * share:.0f}" if abs(share) >= 1 else f"{round(100 * share, 1) + 0.0:.1f}"


def expected(objective: Objective, verdict: "Verdict") -> str:
    """Return the expected values of the recommended configuration and of the default, with their numbers of runs."""

    def value(number: float, runs: int) -> str:
        return f"{quantity(number, objective)} " + (f"({runs} runs)" if runs != 1 else "(1 run)")

    text = f"{objective.metric} {value(verdict.value, verdict.runs)}"
    return text if verdict.default is None else f"{text}, default {value(verdict.default, verdict.default_runs)}"


def doubts(verdict: "Verdict | ParetoVerdict") -> str:
    """Return how many timings are doubtful, as a sentence."""
    timings = "1 timing is" if verdict.measured == 1 else f"{verdict.measured} timings are"
    return f"{verdict.doubtful} of {timings} doubtful, for example because other processes used the machine."


_SECONDS = ("s", "sec", "second", "seconds")
_SMALLER = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def quantity(value: float, objective: Objective) -> str:
    """Return a value with its unit as the console shows it (`formatMetric`): less than a second in ms, µs or ns."""
    unit = objective.unit or ("s" if objective.metric in _SECONDS else "")
    if unit in _SECONDS:
        scale, unit = next((one for one in _SMALLER if abs(value) >= one[0]), _SMALLER[0])
        value /= scale
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    """Return a value with four digits, and never fewer than left of the point."""
    whole = 0 if value == 0 or not math.isfinite(value) else math.floor(math.log10(abs(value))) + 1
    return f"{value:.{max(4, min(whole, 9))}g}"


def shown(value: object) -> str:
    """Return a value as text for people."""
    match value:
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:.6g}"
        case datetime():
            return value.astimezone().strftime("%Y-%m-%d %H:%M")
    return str(value)


def plain(value: object) -> object:
    """Return a value for files: times in ISO 8601, others unchanged."""
    return value.isoformat() if isinstance(value, datetime) else value
