"""Prepare a trial: check and render everything, so that a supervisor needs no component file."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from trimtab_agent.components import arguments
from trimtab_agent.components.environment import inherited
from trimtab_agent.config import NO_PROMETHEUS, Prometheus
from trimtab_agent.errors import NotInComponentError
from trimtab_agent.runners.base import BuildSpec, JobSpec
from trimtab_components.placeholders import render_argument
from trimtab_components.schema import Component, Configuration


def prepare(
    component: Component,
    application_name: str,
    given: Configuration,
    *,
    title: str,
    required: Sequence[str],
    timeout: float,
    work: Path,
    cache: Path,
    cache_limit: int,
    prometheus: Prometheus = NO_PROMETHEUS,
) -> JobSpec:
    """Return the job of one trial, and write its templates and files into its work folder.

    Args:
        component: the component.
        application_name: the application to run; empty: the first.
        given: values by parameter; other parameters have their defaults.
        title: the name of the trial for people.
        required: metrics without which the trial is infeasible.
        timeout: seconds; it can only shorten the application's own time-out; 0: no effect.
        work: the trial's folder, which must exist.
        cache: folder of the build cache.
        cache_limit: maximum size of the build cache in bytes.
        prometheus: the server for metrics that name none.

    Raises:
        NotInComponentError: the application, a parameter, a metric or a source does not exist, or a metric needs the
            address of a Prometheus server.
        UnsuitableValueError: the component does not allow a value.
        OSError: the work folder cannot be written.
    """
    application = component.applications.get(application_name or next(iter(component.applications)))
    if application is None:
        known = ", ".join(component.applications)
        raise NotInComponentError(
            f"component {component.name!r} has no application {application_name!r}; it has {known}"
        )
    for metric in required:
        if metric not in component.metrics:
            known = ", ".join(component.metrics)
            raise NotInComponentError(f"component {component.name!r} has no metric {metric!r}; it has {known}")
    for one in component.metrics.values():
        if one.kind == "prometheus" and not one.url and not prometheus.url:
            raise NotInComponentError(
                f"metric {one.name!r} of component {component.name!r} has no Prometheus server. Start the agent with"
                " --prometheus-url, or give the metric a `url`"
            )
    values = arguments.effective_values(component, given)
    rendering = arguments.render(component, values)
    places = {"component": str(component.folder), "work": str(work), "build": str(work)}
    base_env = inherited(os.environ)
    build = _build(component, rendering, places, base_env, cache=cache, limit=cache_limit)
    if build:
        places["build"] = build.entry
    arguments.write_templates(component, rendering, places, work)
    for file in application.files:
        shutil.copy(file, work / file.name)
    own = arguments.environment(component, application, rendering, places)
    preload = [render_argument(library, places) for library in component.preload]
    if preload:
        before = own.get("LD_PRELOAD", base_env.get("LD_PRELOAD"))
        own["LD_PRELOAD"] = ":".join([*preload, *filter(None, [before])])
    return JobSpec(
        name=title,
        work=str(work),
        cwd=render_argument(application.cwd, {**rendering.texts, **places}),
        command=arguments.command_line(component, application, rendering, places),
        env={**base_env, **own},
        own_env=list(own),
        base_env=base_env,
        timeout=min(application.timeout, timeout) if timeout else application.timeout,
        metrics=[{**asdict(metric), "file": str(metric.file or "")} for metric in component.metrics.values()],
        required=list(required),
        params=values,
        python=sys.executable,
        header=arguments.header_commands(component, rendering, places),
        build=build,
        repeats=application.repeats,
        aggregate=application.aggregate,
        failed_exit_codes=component.failed_exit_codes,
        stream=[asdict(stream) for stream in component.stream],
        scheduler_options=arguments.scheduler_options(component, rendering, places),
        directives=[*application.directives, *arguments.directives(component, rendering, places)],
        asks=arguments.asks(component, rendering),
        artifacts=component.artifacts,
        prometheus=asdict(prometheus),
    )


def _build(
    component: Component,
    rendering: arguments.Rendering,
    places: Mapping[str, str],
    base_env: Mapping[str, str],
    *,
    cache: Path,
    limit: int,
) -> BuildSpec | None:
    if component.build is None:
        return None
    try:
        entry = str(cache / arguments.build_key(component, rendering))
    except FileNotFoundError as error:
        raise NotInComponentError(f"the build of component {component.name!r} lacks a dependency: {error}") from None
    places = {**places, "build": entry}
    values = {**rendering.texts, **places}
    env = {name: render_argument(text, values) for name, text in component.build.env.items()}
    return BuildSpec(
        entry=entry,
        commands=arguments.build_commands(component, rendering, places),
        env={**base_env, **env},
        timeout=component.build.timeout,
        limit=limit,
        own_env=list(env),
    )
