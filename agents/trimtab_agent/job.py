"""From a lease to the job of its trial: combine the component file, the administrator's policy and the lease."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trimtab_agent import invocation
from trimtab_agent.config import Config
from trimtab_agent.lease import Lease
from trimtab_agent.preparation import prepare
from trimtab_agent.runners.base import JobSpec
from trimtab_components.errors import NotInComponentError
from trimtab_components.schema import Component


def job_of(lease: Lease, config: Config, components: Mapping[str, Component], *, work: Path, run: int) -> JobSpec:
    """Return the job of a leased trial, and write its templates and files into its work folder.

    Args:
        lease: the lease of the trial.
        config: this agent's settings.
        components: the installed components.
        work: the trial's folder, which must exist.
        run: the number of this run of the trial within its lease.

    Raises:
        NotInComponentError: the application, a parameter, a metric or a source does not exist here.
        UnsuitableValueError: the component does not allow a value.
        PolicyError: the administrator's policy forbids the trial.
        OSError: the work folder cannot be written.
    """
    component = _component(lease, components)
    offered = config.policy.offered(components)
    if not lease.application and lease.component in offered:
        # The first application that the service knows.
        lease = replace(lease, application=next(iter(offered[lease.component].applications)))
    spec = prepare(
        component,
        lease.application,
        lease.params,
        title=lease.title,
        required=lease.metrics,
        timeout=lease.trial_timeout,
        work=work,
        cache=config.state / "builds",
        cache_limit=config.cache_limit,
        prometheus=config.prometheus,
        live_records=config.live_records,
        plan=lease.live,
    )
    spec = config.policy.admit(lease, component, spec, config.scheduler_options)
    return replace(
        spec,
        exclusive=lease.exclusive,
        replicates=lease.configuration if lease.spread else "",
        measured_on=lease.measured_on,
        same_node=lease.same_node,
        run=run,
        masked=invocation.masked(spec),
    )


def _component(lease: Lease, components: Mapping[str, Component]) -> Component:
    component = components.get(lease.component)
    if component is None:
        raise NotInComponentError(f"this agent has no component {lease.component!r}; it has {', '.join(components)}")
    if lease.digest and lease.digest != component.digest:
        raise NotInComponentError(
            f"component {lease.component!r} has digest {component.digest[:12]} here, "
            f"but the study was made for {lease.digest[:12]}"
        )
    return component
