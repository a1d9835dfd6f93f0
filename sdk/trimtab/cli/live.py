"""`trimtab live`: what is in force in a live study, approvals, and the red button."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from trimtab.cli.connection import connect
from trimtab.cli.output import out, print_json, say, table
from trimtab.live import LiveInstance, LiveJobs, LiveOverview, LivePlan, LiveReading, LiveStatus
from trimtab.space import Scalar

app = typer.Typer(no_args_is_help=True, help="Look at, approve and stop the trials of a system that serves.")

Name = Annotated[str, typer.Argument(help="The study's name.")]
AnyName = Annotated[str, typer.Argument(help="The study's name.", show_default="all live studies")]
Number = Annotated[int, typer.Argument(min=1, help="The number of the trial.")]
Reason = Annotated[str, typer.Option("--reason", help="The reason, which people see.")]
LeaveKept = Annotated[bool, typer.Option("--leave-kept", help="Leave settings in force that were kept.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(
    "status",
    epilog="Examples:\n\n`trimtab live status` lists all live studies and instances\n\n`trimtab live status nightly`"
    "\n\n`trimtab live status nightly --json`",
)
def show_status(study: AnyName = "", as_json: AsJson = False) -> None:
    """Show what is in force, the plans that wait, the budgets, and the settings that were kept."""
    with connect() as client:
        if not study:
            _print_all(client.list_live(), as_json)
            return
        _print(client.get_study(study).live_status(), as_json)


@app.command("approve", epilog="Example:\n\n`trimtab live approve nightly 7`")
def approve(study: Name, trial: Number, reason: Reason = "", as_json: AsJson = False) -> None:
    """Approve the plan of a trial that waits. Only administrators may."""
    with connect() as client:
        _print(client.get_study(study).approve_plan(trial, reason), as_json)


@app.command("decline", epilog='Example:\n\n`trimtab live decline nightly 7 --reason "not during the sale"`')
def decline(study: Name, trial: Number, reason: Reason = "", as_json: AsJson = False) -> None:
    """Decline the plan of a trial that waits. Another candidate takes its place."""
    with connect() as client:
        _print(client.get_study(study).decline_plan(trial, reason), as_json)


@app.command(
    "stop",
    epilog="Examples:\n\n`trimtab live stop nightly`\n\n`trimtab live stop nightly --leave-kept` ends what runs, and"
    " leaves what earlier trials have kept",
)
def stop(study: Name, reason: Reason = "", leave_kept: LeaveKept = False, as_json: AsJson = False) -> None:
    """Pause the study, end its running trials, and put the settings before its first trial back."""
    with connect() as client:
        found = client.get_study(study).stop_live(reason, leave_kept=leave_kept)
    _print(found, as_json)
    waiting = [one for one in found.instances if one.revert_at is not None]
    for one in waiting:
        say(f"{one.instance}: agent {one.agent} puts the old settings back when it answers next. See `live status`.")
    if any(one.in_force for one in found.kept) and not waiting:
        say("Kept settings stay in force. To take them back too, run on the agent's machine: trimtab-agent live revert")


def _print_all(found: LiveOverview, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
        return
    if not found.studies:
        say("There is no live study.")
        return
    shown = table("study", "state", "component", "plans that wait", "trials that run")
    for one in found.studies:
        where = f"{one.component}, {one.application}" if one.application else one.component
        state = one.state + (f": {one.state_reason}" if one.state_reason else "")
        shown.add_row(Text(one.study), Text(state), Text(where), str(one.waiting), str(one.running))
    out.print(shown)
    if found.left_off:
        say(f"{found.left_off} further studies are left out.")
    _print_instances(found.instances, with_study=True)


def _print(status: LiveStatus, as_json: bool) -> None:
    if as_json:
        print_json(asdict(status))
        return
    out.print(Text(f"{status.study}: {status.state}" + (f", {status.state_reason}" if status.state_reason else "")))
    known = "in force" if status.known else "not read yet, by default"
    out.print(Text(f"{known}: {_settings(status.in_force)}"))
    if status.original != status.in_force:
        out.print(Text(f"at the start: {_settings(status.original)}"))
    out.print(Text(f"candidates in force so far: {status.settled}, of which {status.broken} broke a guard"))
    if status.deviation:
        out.print(Text(f"deviation of a pair: {100 * status.deviation:.1f} %"))
    for budget in status.budgets:
        limit = "unknown before the first pair" if budget.limit is None else _amount(budget.limit)
        within = "in this" if status.jobs is None else "within the last"
        said = (
            f"budget {budget.name}: {_amount(budget.spent)} {budget.metric} lost {within} {budget.per}, limit {limit}"
        )
        if status.jobs is None:
            said += f"; a total failure costs {_amount(budget.worst)}"
        out.print(Text(said))
    if status.jobs is not None:
        _print_jobs(status.jobs)
    _print_instances(status.instances)
    _print_plans(status.plans)
    _print_rollout(status)
    if status.kept:
        shown = table("kept by trial", "settings", "effect", "pairs", "in force")
        for one in status.kept:
            shown.add_row(
                str(one.trial),
                Text(_settings(one.params)),
                _percent(one.effect, one.low, one.high),
                str(one.pairs),
                ", ".join(one.instances) if one.in_force else f"no: {one.reason}" if one.reason else "no",
            )
        out.print(shown)


def _print_instances(instances: tuple[LiveInstance, ...], *, with_study: bool = False) -> None:
    if not instances:
        return
    shown = table("instance", "state", *(["study"] if with_study else []), "trial", "settings in force", "guards")
    for one in instances:
        state = one.state if one.phase in ("", one.state) else f"{one.state}, {one.phase}"
        if one.revert_at is not None:
            state += ", the old settings are wanted"
        shown.add_row(
            Text(one.instance),
            Text(state + (f": {one.reason}" if one.reason else "")),
            *([Text(one.study)] if with_study else []),
            "" if one.trial is None else str(one.trial),
            Text(_settings(one.settings)),
            Text("\n".join(_guard(guard) for guard in one.guards)),
        )
    out.print(shown)


def _guard(guard: LiveReading) -> str:
    value = "no reading" if guard.value is None else f"{guard.value:.4g}"
    limit = "does not hold now" if guard.limit is None else f"{'most' if guard.above else 'least'} {guard.limit:.4g}"
    return f"{guard.name}: {guard.metric} {value}, {limit}"


def _print_jobs(jobs: LiveJobs) -> None:
    share = "" if jobs.share is None else f", of which {100 * jobs.share:g} % may get a candidate"
    out.print(Text(f"jobs of record {jobs.record}: {jobs.matched} matched in {jobs.days} days{share}"))
    out.print(
        Text(
            f"jobs with a candidate so far: {jobs.candidates}; pairs: {jobs.counted} counted, {jobs.void} void,"
            f" {jobs.open} open"
        )
    )
    if jobs.reason:
        out.print(Text(f"no pair begins now: {jobs.reason}"))


def _print_rollout(status: LiveStatus) -> None:
    if (found := status.rollout) is not None:
        out.print(Text(f"roll-out: {found.reason}"))
        for word, names in (("kept", found.in_force), ("waiting", found.waiting), ("held back", found.held_back)):
            if names:
                out.print(Text(f"  {word}: {', '.join(names)}"))
    if status.checks:
        last = status.checks[-1]
        gain = _percent(last.effect, last.low, last.high)
        out.print(Text(f"checked against the start: {gain} in {last.pairs} pairs, last at {last.at:%Y-%m-%d %H:%M}"))


def _print_plans(plans: tuple[LivePlan, ...]) -> None:
    if not plans:
        return
    shown = table("trial", "plan", "changes", "expected", "waits")
    for plan in plans:
        waits = plan.reason or ("runs" if plan.trial_state == "ACTIVE" else "for an agent")
        if plan.approved_by:
            waits += f" Approved by {', '.join(plan.approved_by)}."
        shown.add_row(
            str(plan.trial),
            plan.state + (", restarts" if plan.restarts else ""),
            Text("\n".join(f"{name}: {plan.before.get(name, '?')} -> {value}" for name, value in plan.after.items())),
            _percent(plan.expected, None, plan.worst),
            Text(waits),
        )
    out.print(shown)


def _amount(value: float) -> str:
    """Return an amount for people: a large one without a fraction."""
    return f"{value:,.0f}" if value >= 100 or not value else f"{value:.3g}"


def _settings(values: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))


def _percent(effect: float | None, low: float | None, high: float | None) -> str:
    if effect is None:
        return ""
    said = f"{100 * math.expm1(effect):+.1f} %"
    if low is not None and high is not None:
        return f"{said} ({100 * math.expm1(low):+.1f} to {100 * math.expm1(high):+.1f})"
    return said if high is None else f"{said}, at worst {100 * math.expm1(high):+.1f} %"
