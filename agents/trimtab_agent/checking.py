"""`trimtab-agent check`: what the component files in a folder say."""

import shutil
from collections.abc import Iterable

from trimtab_agent.components.schema import Choices, Component, Parameter, Range, as_text


def describe(component: Component) -> str:
    """A component for people: its space, applications and metrics, and what is not on this machine."""
    lines = [f"{component.name}  {component.digest[:12]}  {component.file}"]
    if component.description:
        lines.append("  " + " ".join(component.description.split()))
    lines.append(f"  {len(component.parameters)} parameters")
    rows = [(p.name, _type(p), as_text(p.default), _condition(p)) for p in component.parameters.values()]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    for name, kind, default, condition in rows:
        lines.append(
            f"    {name:<{widths[0]}}  {kind:<{widths[1]}}  default {default:<{widths[2]}}  {condition}".rstrip()
        )
    lines.append(f"  applications: {', '.join(component.applications)}")
    lines.append(f"  metrics: {', '.join(f'{metric.name} ({metric.kind})' for metric in component.metrics.values())}")
    if component.stream:
        lines.append(f"  told while it runs: by lines of {', '.join(stream.source for stream in component.stream)}")
    lines += [f"  warning: {program!r} is not in PATH on this machine" for program in sorted(_missing(component))]
    return "\n".join(lines)


def _type(parameter: Parameter) -> str:
    domain = parameter.domain
    if isinstance(domain, Range):
        extras = [
            f"step {domain.step:g}" if domain.step else "",
            f"factor {domain.factor:g}" if domain.factor else "",
            "log" if domain.log else "",
        ]
        return " ".join([domain.kind, f"{domain.min:g}..{domain.max:g}", *filter(None, extras)])
    if isinstance(domain, Choices):
        return f"{'ordinal' if domain.ordered else 'categorical'} {' '.join(as_text(value) for value in domain.values)}"
    return "boolean"


def _condition(parameter: Parameter) -> str:
    if parameter.condition is None:
        return ""
    return (
        f"while {parameter.condition.parent} is {' or '.join(as_text(value) for value in parameter.condition.values)}"
    )


def _missing(component: Component) -> set[str]:
    commands: list[Iterable[str]] = [application.command for application in component.applications.values()]
    commands += [*component.header, *(component.build.commands if component.build else ())]
    programs = {next(iter(command)) for command in commands}
    return {program for program in programs if "{" not in program and not shutil.which(program)}
