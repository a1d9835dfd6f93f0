"""`trimtab-agent check`: describe the components in a folder, and whether this machine is suitable for timings."""

import os
import shutil
import time
from collections.abc import Iterable, Sequence

from trimtab_agent.supervisor import quiet
from trimtab_components.schema import Choices, Component, Metric, Parameter, Range, as_text


def describe(component: Component) -> str:
    """Describe a component: its space, applications and metrics, and the programs missing here."""
    lines = [f"{component.name}  {component.digest}  {component.file}"]
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
    lines.append(f"  metrics: {', '.join(_metric(metric) for metric in component.metrics.values())}")
    if component.stream:
        lines.append(
            f"  measurements during the run: from lines of {', '.join(stream.source for stream in component.stream)}"
        )
    lines += [f"  warning: {program!r} is not in PATH on this machine" for program in sorted(_missing(component))]
    return "\n".join(lines)


def outline(component: Component, refusals: Sequence[tuple[str, str, Exception]]) -> dict[str, object]:
    """Return what `describe` says, for programs, and why a policy refuses applications."""
    return {
        "name": component.name,
        "digest": component.digest,
        "file": str(component.file),
        "parameters": {name: _type(one) for name, one in component.parameters.items()},
        "applications": list(component.applications),
        "metrics": list(component.metrics),
        "missing_programs": sorted(_missing(component)),
        "refused": {application: str(why) for name, application, why in refusals if name == component.name},
    }


# Seconds to observe the machine at least: for a shorter time, the load may come from this program's own start.
OBSERVED_TIME = 0.25


class Machine:
    """Observes this machine from the creation of the object."""

    def __init__(self) -> None:
        self._cpus = os.sched_getaffinity(0)
        self._watch = quiet.Watch(self._cpus)
        self._began = time.monotonic()

    def remarks(self) -> Sequence[str]:
        """Return reasons to doubt timings: settings of the machine and load since the start."""
        return [*quiet.setting(self._cpus).values(), *quiet.doubts([self._watch.load()]).values()]

    def describe(self) -> str:
        """Return these reasons as text, after observing for at least OBSERVED_TIME."""
        time.sleep(max(0.0, OBSERVED_TIME - (time.monotonic() - self._began)))
        remarks = self.remarks()
        return "\n".join(f"warning: timing: {remark}" for remark in remarks) or "timing: this machine is quiet"


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


def _metric(metric: Metric) -> str:
    read = f"{metric.tool} {metric.output_field}" if metric.kind == "tool" else metric.kind
    of = metric.of or metric.process
    return f"{metric.name} ({read}{f' of {of}' if of else ''})"


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
