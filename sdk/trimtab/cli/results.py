"""The results of a study for people: verdict, recommended configuration, Pareto front, failures."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from trimtab.cli.output import out, say, shown, table
from trimtab.cli.quantities import quantity
from trimtab.objective import Maximize, Objective
from trimtab.trial import Trial, TrialState

if TYPE_CHECKING:
    from trimtab.context import ContextRow, ContextTable
    from trimtab.method import Compared, Effects, ObjectiveGain, ParetoVerdict, Verdict
    from trimtab.study import Study

# How many different reasons of failures are printed.
MOST_REASONS = 3
# How many trials a table has as columns.
SIDE_BY_SIDE = 4


def say_start(study: "Study") -> None:
    """Print how many configurations the constraints leave, and how many come from each earlier study."""
    size, feasible = study.status.space_size, study.status.feasible_size
    if size is not None and feasible is not None:
        say(f"The constraints leave {_count(feasible)} of {_count(size)} configurations.")
    for one in study.status.started_from:
        outside = f"; {one.passed_over} lie outside the new space and are skipped" if one.passed_over else ""
        say(f"Started from {one.study}: {one.taken} of its best configurations are measured first{outside}.")


def _count(number: int) -> str:
    """Return a number of configurations: 91, 16.8 million, 3.4e+26."""
    if number < 1_000_000:
        return f"{number:,}"
    for unit, size in (("million", 10**6), ("billion", 10**9), ("trillion", 10**12)):
        if number < 1000 * size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def goals(study: "Study") -> str:
    """Return the objectives as text."""
    return ", ".join(
        f"{'maximize' if isinstance(objective, Maximize) else 'minimize'} {objective.metric}"
        + (f" ({objective.unit})" if objective.unit else "")
        for objective in study.objectives
    )


def print_best(study: "Study") -> bool:
    """Print the best trial or the Pareto front, with parameters. Return whether there is one."""
    best = study.best_trials
    if not best:
        say_none(study)
        return False
    _print_penalties(study)
    if study.spec.context:
        print_contexts(study.context_table())
        _print_advice(study)
        return True
    verdict = study.verdict
    if verdict is not None:
        print_verdict(study.objectives[0], verdict, "Recommended")
        chosen = table("parameter", "value")
        # A service of an earlier version sends no configuration with its verdict.
        for name, value in (verdict.params or best[0].params).items():
            chosen.add_row(Text(name), Text(shown(value)))
        out.print(chosen)
        if verdict.effects is not None:
            _print_effects(verdict.effects)
        return True
    pareto = study.pareto_verdict
    if pareto is not None:
        _print_members(study, pareto)
    _print_advice(study)
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


def _print_advice(study: "Study") -> None:
    if advice := study.advice:
        out.print(advice, markup=False, soft_wrap=True)


def print_contexts(found: "ContextTable") -> None:
    """Print the recommendations of a study with a context, a row for each context."""
    contexts = list(found.rows[0].context)
    settings = list(dict.fromkeys(name for row in found.rows for name in row.settings))
    shown_table = table(*contexts, *settings, "value", "default", "verdict")
    for row in found.rows:
        cells = [shown(row.context[name]) for name in contexts]
        cells += [shown(row.settings[name]) if name in row.settings else "" for name in settings]
        shown_table.add_row(*map(Text, [*cells, *_values_of(row)]), Text(_verdict_of(row)))
    out.print(shown_table)


def _values_of(row: "ContextRow") -> tuple[str, str]:
    """Return the value of the settings of a row, and that of the default."""
    if row.verdict is None or row.verdict.default is None:
        return "", ""
    default = f"{row.verdict.default:.6g}"
    return (default if row.is_default else f"{row.verdict.value:.6g}"), default


def _verdict_of(row: "ContextRow") -> str:
    """Return the verdict of a row with its conditions. The settings that were found are named if none is proven."""
    text = "not measured yet" if row.verdict is None else certain(row.verdict)
    conditions = () if row.verdict is None else row.verdict.conditions
    text = "; ".join([text, *conditions])
    if not row.is_default:
        return text
    found = ", ".join(f"{name} {shown(value)}" for name, value in (row.best or {}).items())
    return f"default: {text}; found: {found}" if found else f"default: {text}"


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


def print_verdict(objective: Objective, verdict: "Verdict", title: str) -> None:
    """Print a verdict with its conditions, its numbers under this title, and what else was compared."""
    out.print(f"Verdict: {certain(verdict)}", markup=False, soft_wrap=True)
    for condition in verdict.conditions:
        out.print(f"Condition: {condition}", markup=False, soft_wrap=True)
    out.print(f"{title}: {expected(objective, verdict)}", markup=False, soft_wrap=True)
    if verdict.compared is not None:
        out.print(f"Compared with the default: {compared(objective, verdict.compared)}", markup=False, soft_wrap=True)
    _print_doubts(verdict)
    if verdict.advice:
        out.print(verdict.advice, markup=False, soft_wrap=True)


def _print_penalties(study: "Study") -> None:
    """Print how to report configurations that do not work, if values look like penalties."""
    advice = study.penalties
    if advice is None:
        return
    out.print(advice.text, markup=False, soft_wrap=True)
    for way in (advice.call, advice.command):
        if way:
            out.print(f"  {way}", markup=False, soft_wrap=True)


def compared(objective: Objective, found: "Compared") -> str:
    """Return a configuration that is not recommended, with what was measured of it."""
    settings = ", ".join(f"{name} {shown(value)}" for name, value in found.params.items())
    if found.value is None:
        return settings
    return f"{settings}: {objective.metric} {quantity(found.value, objective)} ({_runs(found.runs)})"


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
    for condition in verdict.conditions:
        out.print(f"Condition: {condition}", markup=False, soft_wrap=True)
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
        return f"{quantity(number, objective)} ({_runs(runs)})"

    text = f"{objective.metric} {value(verdict.value, verdict.runs)}"
    return text if verdict.default is None else f"{text}, default {value(verdict.default, verdict.default_runs)}"


def _runs(count: int) -> str:
    return f"{count} runs" if count != 1 else "1 run"


def doubts(verdict: "Verdict | ParetoVerdict") -> str:
    """Return how many timings are doubtful, as a sentence."""
    timings = "1 timing is" if verdict.measured == 1 else f"{verdict.measured} timings are"
    return f"{verdict.doubtful} of {timings} doubtful, for example because other processes used the machine."
