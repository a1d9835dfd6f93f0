"""`trimtab match`: the settings for a job that resembles a tuned application, and the records behind them."""

import getpass
import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import PurePosixPath
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from trimtab.cli.connection import connect
from trimtab.cli.output import out, print_json, say, shown, table
from trimtab.errors import InvalidInput
from trimtab.records import Audience, Feedback, Job, Match, MatchingSettings, Part, Record, RecordState
from trimtab.terminal import on_one_line

JOB_EXAMPLES = (
    "Examples:\n\n"
    "`trimtab match -- ./ant --grid 64`\n\n"
    "`trimtab match --name angry_ant --nodes 4 --cluster-nodes 64 -- srun ./ant --grid 64`\n\n"
    "`trimtab match --component sro --json -- ./ant --grid 64`"
)
_JOB = "job"


class MatchCommands(TyperGroup):
    """Commands of which `job` need not be written: `trimtab match -- ./ant` is `trimtab match job -- ./ant`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the name of the command that was left out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_JOB, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=MatchCommands,
    no_args_is_help=True,
    help="Find the proven settings for a job that resembles a tuned application.\n\n"
    "`trimtab match -- COMMAND...` shows the record of each component that the job resembles most, and why. A study\n"
    "with a proven gain writes such a record. The other commands show and change the records.\n\n" + JOB_EXAMPLES,
)
RecordId = Annotated[str, typer.Argument(help="The id of the record, from `trimtab match records`.")]
Reason = Annotated[str, typer.Option(help="Why, for others to read.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(
    _JOB,
    epilog=JOB_EXAMPLES + "\n\n`trimtab match job -- jobs` (for a program that is called like a command of this one)",
    # What follows the first word is the command's own.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
def match_job(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The command of the job.")],
    user: Annotated[str | None, typer.Option(help="The user who submits the job; you, if left out.")] = None,
    name: Annotated[str | None, typer.Option(help="The name of the job; the program's, if left out.")] = None,
    nodes: Annotated[int, typer.Option(help="The number of nodes of the job.")] = 1,
    cluster: Annotated[str, typer.Option(help="The name of the cluster, whose weights apply.")] = "",
    cluster_nodes: Annotated[int, typer.Option(help="The number of nodes of the cluster; 0: as the job.")] = 0,
    component: Annotated[list[str] | None, typer.Option(help="Only this component. Repeat it for several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the records that a job resembles most, with their settings and the parts of the scores."""
    program = PurePosixPath(command[0]).name
    job = Job(
        user=getpass.getuser() if user is None else user,
        name=program if name is None else name,
        program=program,
        command_line=shlex.join(command),
        nodes=nodes,
        cluster=cluster,
        cluster_nodes=cluster_nodes,
    )
    with connect() as client:
        found = client.matching.match(job, components=component or (), explain=True)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    if not found:
        say("No record can match the job. A study with a proven gain writes one.")
        return
    for one in found:
        _print_match(one)


@app.command("records", epilog="Examples:\n\n`trimtab match records`\n\n`trimtab match records --component sro --json`")
def list_records(
    component: Annotated[str, typer.Option(help="Only records of this component.")] = "",
    study: Annotated[str, typer.Option(help="Only the record of this study.")] = "",
    state: Annotated[RecordState | None, typer.Option(help="Only records in this state.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the records of tuned applications, newest first, and how the jobs with their settings fared."""
    with connect() as client:
        found = client.matching.records(component=component, study=study, state=state)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    if not found:
        say("There is no such record. A study with a proven gain writes one.")
        return
    listed = table("record", "component", "study", "job", "nodes", "gain", "state", "jobs", "run time")
    for one in found:
        fared = one.feedback
        listed.add_row(
            one.id,
            Text(f"{one.component} {one.application}".strip()),
            Text(one.study),
            Text(f"{one.job.user} {one.job.name}"),
            str(one.job.nodes),
            _percent(one.gain),
            _state(one),
            "" if fared is None else f"{fared.applied}+{fared.control}",
            _change(fared),
        )
    out.print(listed)


@app.command(epilog='Example:\n\n`trimtab match withdraw 12 --reason "The compiler is new."`')
def withdraw(record: RecordId, reason: Reason = "") -> None:
    """Withdraw a record, so that no job matches it."""
    with connect() as client:
        _say_state(client.matching.withdraw(record, reason=reason))


@app.command(epilog="Example:\n\n`trimtab match restore 12`")
def restore(record: RecordId, reason: Reason = "") -> None:
    """Make a withdrawn record active again. Only later jobs then count for or against it.

    An administrator approves a record in this way: then jobs of everybody may match it.
    """
    with connect() as client:
        _say_state(client.matching.restore(record, reason=reason))


@app.command(epilog="Examples:\n\n`trimtab match approval`\n\n`trimtab match approval --not-required`")
def approval(
    required: Annotated[
        bool | None,
        typer.Option("--required/--not-required", help="Whether records need it. Only administrators set it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show or set whether an administrator has to approve a record before other users' jobs get its settings.

    Until then a record is for jobs of its own user alone, who is the study's creator. A study that an administrator
    has created needs no approval.
    """
    with connect() as client:
        matching = client.matching
        needed = matching.approval_required() if required is None else matching.require_approval(required)
    if as_json:
        print_json({"required": needed})
    else:
        out.print(f"Approval: {'required' if needed else 'not required'}", markup=False)


@app.command("jobs", epilog="Examples:\n\n`trimtab match jobs`\n\n`trimtab match jobs --record 12 --limit 500 --json`")
def list_jobs(
    record: Annotated[str, typer.Option(help="Only jobs that considered the record of this id.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="The maximum number of jobs.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the jobs that agents have reported, newest first."""
    with connect() as client:
        found = client.matching.jobs(record=record, limit=limit)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    if not found:
        say("No agent has reported such a job.")
        return
    listed = table("job", "user", "name", "nodes", "end", "seconds", "records")
    for one in found:
        considered = "\n".join(f"{record.record}: {record.decision.lower()}" for record in one.considered)
        listed.add_row(
            Text(one.job_id or one.submission[:8]),
            Text(one.job.user),
            Text(one.job.name),
            str(one.job.nodes),
            one.end.lower(),
            f"{one.seconds:.1f}",
            Text(considered),
        )
    out.print(listed)


@app.command(
    epilog="Examples:\n\n`trimtab match settings`\n\n"
    "`trimtab match settings --cluster alpha --threshold 0.85 --weight user=2 --weight nodes=0 --night 20-7`"
)
def settings(
    cluster: Annotated[str, typer.Option(help="The cluster; left out: all without settings of their own.")] = "",
    threshold: Annotated[float | None, typer.Option(help="The least score of a match, from 0 to 1.")] = None,
    weight: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=NUMBER", help="The weight of a field. Others keep theirs.")
    ] = None,
    night: Annotated[str | None, typer.Option(metavar="FROM-UNTIL", help="The night's hours in UTC.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how jobs and records are compared, or change it."""
    with connect() as client:
        found = client.matching.settings(cluster)
        changed = _changed(found, threshold, weight or [], night)
        if changed != found:
            found = client.matching.update_settings(changed, cluster=cluster)
    if as_json:
        print_json(asdict(found))
        return
    out.print(f"Threshold: {found.threshold:g}", markup=False)
    out.print(f"Night: {found.night_from} to {found.night_until} h UTC", markup=False)
    total = sum(found.weights.values())
    listed = table("field", "weight", "share")
    for field, value in found.weights.items():
        listed.add_row(field, f"{value:.4g}", f"{100 * value / total:.1f} %")
    out.print(listed)


def _print_match(one: Match) -> None:
    record = one.record
    title = f"Record {record.id}: {record.component} {record.application}".rstrip()
    out.print(on_one_line(f"{title}, by study {record.study}"), markup=False, soft_wrap=True)
    verdict = "Match" if one.accepted else "No match"
    out.print(on_one_line(f"{verdict}: {one.reason}"), markup=False, soft_wrap=True)
    gain = f"{_percent(record.gain)} ({_percent(record.gain_low)} to {_percent(record.gain_high)})"
    out.print(f"Proven gain: {gain}", markup=False, soft_wrap=True)
    for condition in record.conditions:
        out.print(f"Condition: {condition}", markup=False, soft_wrap=True)
    job = record.job
    tuned = f"Tuned job: {job.name} of {job.user} on {job.nodes} nodes: {job.command_line}"
    out.print(on_one_line(tuned), markup=False)
    parts = table("field", "weight", "similarity", "part")
    for part in one.parts:
        if part.weight:
            parts.add_row(part.field, f"{part.weight:.3f}", f"{part.similarity:.3f}", _product(part))
    out.print(parts)
    chosen = table("parameter", "value")
    for name, value in record.params.items():
        chosen.add_row(Text(name), Text(shown(value)))
    out.print(chosen)


def _product(part: Part) -> str:
    return f"{part.weight * part.similarity:.3f}"


def _say_state(record: Record) -> None:
    say(on_one_line(f"Record {record.id} is {record.state.lower()}: {record.state_reason}"))


def _state(record: Record) -> Text:
    if record.state is RecordState.ACTIVE:
        return Text("active" if record.audience is Audience.EVERYBODY else f"active for {record.job.user}", "green")
    return Text("needs approval", "yellow") if record.cause == "approval" else Text("withdrawn", "red")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _change(fared: Feedback | None) -> str:
    if fared is None or fared.change is None or fared.low is None or fared.high is None:
        return ""
    return f"{100 * fared.change:+.1f} % ({100 * fared.low:+.1f} to {100 * fared.high:+.1f} %)"


def _changed(
    found: MatchingSettings, threshold: float | None, weights: list[str], night: str | None
) -> MatchingSettings:
    """Return the settings with what the options say. Raises InvalidInput."""
    changed = found
    if threshold is not None:
        changed = replace(changed, threshold=threshold)
    if weights:
        changed = replace(changed, weights={**found.weights, **_weights(weights)})
    if night is not None:
        begin, _, end = night.partition("-")
        if not (begin.isdecimal() and end.isdecimal()):
            raise InvalidInput.of("night", night, "two hours such as 22-6")
        changed = replace(changed, night_from=int(begin), night_until=int(end))
    return changed


def _weights(texts: list[str]) -> Mapping[str, float]:
    found = {}
    for text in texts:
        field, _, number = text.partition("=")
        try:
            found[field] = float(number)
        except ValueError:
            raise InvalidInput.of("weight", text, "FIELD=NUMBER, such as user=2") from None
    return found
