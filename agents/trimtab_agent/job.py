"""From a lease to the job that its trial is here: what a component file, the administrator's policy and the lease make
of it together."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trimtab_agent import invocation
from trimtab_agent.components.schema import Component
from trimtab_agent.config import Config
from trimtab_agent.errors import NotInComponentError
from trimtab_agent.lease import Lease
from trimtab_agent.preparation import prepare
from trimtab_agent.runners.base import JobSpec


def job_of(lease: Lease, config: Config, components: Mapping[str, Component], *, work: Path, run: int) -> JobSpec:
    """The job of a leased trial; its work folder, which must be there, gets templates and files.

    Args:
        lease: what is to be run.
        config: this agent's settings.
        components: those that are installed here.
        work: the trial's folder.
        run: which run of the trial within its lease this is.

    Raises:
        NotInComponentError: an application, parameter or metric that there is not here; a source that is gone.
        UnsuitableValueError: a value that the component does not allow.
        PolicyError: the administrator does not allow it.
        OSError: the work folder cannot be written.
    """
    component = _component(lease, components)
    offered = config.policy.offered(components)
    if not lease.application and lease.component in offered:
        # the first of those that the service knows of
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
    )
    spec = config.policy.admit(lease, component, spec, config.scheduler_options)
    return replace(
        spec,
        exclusive=lease.exclusive,
        replicates=lease.configuration if lease.spread else "",
        measured_on=lease.measured_on,
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
