"""`trimtab agent`: list, enrol and revoke agents."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from trimtab._internal.connection import login as logins
from trimtab.cli.connection import connect
from trimtab.cli.output import echo, out, print_json, say, table
from trimtab.fleet import Agent, Component
from trimtab.space import Bool, Categorical, Float, Int, Ordinal, Parameter, condition

app = typer.Typer(no_args_is_help=True, help="List, add and revoke agents: the machines that run trials.")


@app.command("list", epilog="Examples:\n\n`trimtab agent list`\n\n`trimtab agent list --json`")
def list_agents(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with each component's parameters.")] = False,
) -> None:
    """List the agents and the components that they can tune."""
    with connect() as client:
        agents = client.list_agents()
    if as_json:
        print_json([_agent_json(agent) for agent in agents])
        return
    if not agents:
        say("No agent has registered. To add one, run: trimtab agent enrol")
        return
    shown = table("agent", "state", "running", "components", "last seen")
    for agent in agents:
        shown.add_row(
            Text(agent.name),
            Text("online", "green") if agent.online else Text("offline", "red"),
            f"{agent.running}/{agent.slots}",
            Text("\n".join(f"{item.name} ({', '.join(item.applications)})" for item in agent.components)),
            _ago(agent.last_seen_at),
        )
    out.print(shown)


@app.command(epilog="Examples:\n\n`trimtab agent enrol`\n\n`trimtab agent enrol --minutes 10080 --token-only`")
def enrol(
    minutes: Annotated[int, typer.Option(help="How long the token is valid, 1 to 10080 minutes.")] = 60,
    token_only: Annotated[bool, typer.Option("--token-only", help="Print only the token.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the token and the command as JSON.")] = False,
) -> None:
    """Add an agent: print the command that enrols it. The command works once."""
    with connect() as client:
        secret, where = client.enrol_agent(minutes=minutes), logins.Address.parse(client.address)
    if token_only and not as_json:
        echo(secret)
        return
    same = logins.Address.parse(where.target).secure == where.secure
    tls = "" if same else " --tls" if where.secure else " --plaintext"
    # All users of a machine see the arguments of a process, and nobody else its environment.
    command = f"TRIMTAB_ENROL_TOKEN={secret} trimtab-agent run --server {where.target}{tls} --components DIR"
    if as_json:
        print_json({"token": secret, "command": command, "minutes": minutes})
        return
    say(f"Run this on the new machine within {minutes} minutes. The agent stores its own credential:")
    echo(command)


@app.command(epilog="Example:\n\n`trimtab agent revoke 4c1f...` (the id is in `trimtab agent list --json`)")
def revoke(agent_id: Annotated[str, typer.Argument(help="The agent's id.")]) -> None:
    """Revoke all credentials of an agent at once. To use it again, enrol it again."""
    with connect() as client:
        client.revoke_agent(agent_id)
    say(f"Agent {agent_id} is revoked.")


def _agent_json(agent: Agent) -> dict[str, object]:
    data = {field.name: getattr(agent, field.name) for field in fields(agent)}
    return {**data, "components": [_component_json(component) for component in agent.components]}


def _component_json(component: Component) -> dict[str, object]:
    data = {field.name: getattr(component, field.name) for field in fields(component) if field.name != "space"}
    return {**data, "parameters": {item.name: _parameter_json(item) for item in component.space}}


def _parameter_json(parameter: Parameter) -> dict[str, object]:
    """Return a parameter as a study file describes it."""
    data: dict[str, object]
    match parameter:
        case Float() | Int():
            data = {"type": "float" if isinstance(parameter, Float) else "int"}
            data |= {"min": parameter.min, "max": parameter.max, "log": parameter.log or None}
            data |= {"step": parameter.step, "factor": parameter.factor}
        case Ordinal() | Categorical():
            kind = "ordinal" if isinstance(parameter, Ordinal) else "categorical"
            data = {"type": kind, "values": list(parameter.values)}
        case Bool():
            data = {"type": "boolean"}
    requirement = condition(parameter)
    data |= {"default": parameter.default, "unit": parameter.unit or None}
    data["condition"] = requirement and {"parent": requirement[0], "values": list(requirement[1])}
    return {key: value for key, value in data.items() if value is not None}


def _ago(time: datetime | None) -> str:
    if time is None:
        return ""
    seconds = max(0.0, (datetime.now(UTC) - time).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
