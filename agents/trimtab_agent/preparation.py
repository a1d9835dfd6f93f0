"""Prepare a trial: check and render everything, so that a supervisor needs no component file."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trimtab_agent.components.build_key import build_key
from trimtab_agent.components.environment import inherited
from trimtab_agent.config import NO_PROMETHEUS, Prometheus
from trimtab_agent.live_plans import live_plan
from trimtab_agent.runners.base import BuildSpec, JobSpec
from trimtab_components import arguments
from trimtab_components.errors import NotInComponentError
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
    live_records: Path | None = None,
    plan: Mapping[str, Any] | None = None,
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
        live_records: folder of the records of live systems; None: no live system may be switched.
        plan: how a trial of a live study compares; None: a live system is measured in one block.

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
    if component.live is None and plan is not None:
        raise NotInComponentError(
            f"component {component.name!r} has no key `live` here, so no live study can switch its settings"
        )
    if component.live is not None:
        if live_records is None:
            raise NotInComponentError(
                f"component {component.name!r} switches a live system, which only `trimtab-agent run` does, with the"
                " key `live` in its policy"
            )
        live = live_plan(component, component.live, application.name, values, records=live_records, plan=plan)
        changed = {name: value for name, value in values.items() if name not in component.live.forbidden}
        env = inherited(os.environ)
        return JobSpec(
            name=title,
            work=str(work),
            cwd=str(work),
            command=(),
            env=env,
            base_env=env,
            timeout=timeout,
            metrics=[],
            required=list(required),
            params=changed,
            python=sys.executable,
            prometheus=asdict(prometheus),
            live=live,
        )
    rendering = arguments.render(component, values)
    places = {"component": str(component.folder), "work": str(work), "build": str(work)}
    base_env = inherited(os.environ)
    build = _build(component, rendering, places, base_env, cache=cache, limit=cache_limit)
    if build:
        places["build"] = build.entry
    for target, text in arguments.templates(component, rendering, places).items():
        (work / target).parent.mkdir(parents=True, exist_ok=True)
        (work / target).write_text(text, encoding="utf-8")
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
        entry = str(cache / build_key(component, rendering))
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
