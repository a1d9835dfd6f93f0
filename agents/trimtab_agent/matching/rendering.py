"""From the values of a record to what can be added to a job that somebody else has written.

A job can be given environment variables, preloaded libraries and options of its scheduler. A component whose values
reach the program in another way cannot be applied to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trimtab_agent.errors import NotForJobsError
from trimtab_agent.matching_rules import ComponentUse
from trimtab_agent.runners import slurm_options
from trimtab_components import arguments
from trimtab_components.placeholders import AbsentError, names_in_argument, names_in_template, render_argument
from trimtab_components.schema import Application, Component, Configuration, Parameter

# Folders that only a trial has.
OF_TRIALS = {"build", "work"}


@dataclass(frozen=True)
class Settings:
    """Additions to a job. `tuned` names the variables that depend on values; the others are the same for every
    configuration. `options` are long names of the scheduler's options with their values."""

    environment: Mapping[str, str]
    tuned: frozenset[str]
    preload: Sequence[str]
    options: Sequence[tuple[str, str]]

    @property
    def variables(self) -> set[str]:
        """The names of all variables that the settings change."""
        return {*self.environment, *(["LD_PRELOAD"] if self.preload else [])}


def render(component: Component, application: str, given: Configuration, use: ComponentUse) -> Settings:
    """Return the additions that the values mean.

    Args:
        component: the installed component.
        application: the component's application that was tuned.
        given: the values of the record.
        use: the administrator's rules for this component.

    Raises:
        NotForJobsError: the component, or one of the values, cannot be applied to a job.
        NotInComponentError: a parameter does not exist here.
        UnsuitableValueError: the component does not allow a value.
    """
    component = _without_workload(component, use.workload)
    values = arguments.effective_values(component, given)
    for name, value in values.items():
        parameter = component.parameters[name]
        # A parameter at its default needs no help.
        if name not in use.workload and value != parameter.default:
            _check_reach(component, application, parameter)
    rendering = arguments.render(component, values)
    texts = {**rendering.texts, "component": str(component.folder)}
    environment, tuned = _environment(component, texts, use)
    environment.update(rendering.env)
    tuned.update(rendering.env)
    preload = [*component.preload] if use.preload is None else [*use.preload]
    if use.preload is None:
        preload = [_of_jobs(component, "preload", "the library", item, texts) for item in component.preload]
    for item in component.scheduler_options:
        _check_place(component, f"the scheduler option {item}", item)
    words = arguments.scheduler_options(component, rendering, {"component": str(component.folder)})
    try:
        options = slurm_options.asked(words, ())
    except slurm_options.UnreadableOptionError as error:
        raise NotForJobsError(f"component {component.name!r}: {error}") from None
    return Settings(environment, frozenset(tuned), preload, options)


def _without_workload(component: Component, names: Sequence[str]) -> Component:
    """Return the component without the variables and scheduler options of a job's own parameters."""
    return replace(
        component,
        parameters={
            name: replace(parameter, env=None, flag=None, scheduler=None, directive=None)
            if name in names
            else parameter
            for name, parameter in component.parameters.items()
        },
        env={name: text for name, text in component.env.items() if not {*names} & {*names_in_argument(text)}},
        scheduler_options=tuple(
            item for item in component.scheduler_options if not {*names} & {*names_in_argument(item)}
        ),
    )


def _environment(component: Component, texts: Mapping[str, str], use: ComponentUse) -> tuple[dict[str, str], set[str]]:
    environment: dict[str, str] = {}
    tuned: set[str] = set()
    for name, text in component.env.items():
        if name in use.omit or name in use.environment:
            continue
        try:
            environment[name] = _of_jobs(component, "environment", f"the variable {name}", text, texts)
        except AbsentError:
            continue
        if {*names_in_argument(text)} & {*component.parameters}:
            tuned.add(name)
    return {**environment, **use.environment}, tuned


def _of_jobs(component: Component, key: str, noun: str, text: str, texts: Mapping[str, str]) -> str:
    advice = f" Give its value on the cluster in the policy: matching.components.{component.name}.{key}."
    _check_place(component, noun, text, advice)
    return render_argument(text, texts)


def _check_place(component: Component, noun: str, text: str, advice: str = "") -> None:
    for name in names_in_argument(text):
        if name in OF_TRIALS:
            raise NotForJobsError(
                f"component {component.name!r}: {noun} names a folder of trials ({{{name}}}), which a job does not "
                f"have.{advice}"
            )


def _check_reach(component: Component, application: str, parameter: Parameter) -> None:
    for way in _other_ways(component, application, parameter):
        raise NotForJobsError(
            f"component {component.name!r}: parameter {parameter.name!r} reaches the program by {way}, and a job that "
            "is already written can be given only environment variables, preloaded libraries and scheduler options."
        )
    if not parameter.env and not parameter.scheduler and not _is_written(component, parameter.name):
        raise NotForJobsError(f"component {component.name!r}: parameter {parameter.name!r} reaches nothing.")


def _other_ways(component: Component, application: str, parameter: Parameter) -> Iterator[str]:
    if parameter.flag:
        yield f"a command-line flag (parameters.{parameter.name}.flag)"
    if parameter.directive:
        yield f"a line of the batch script (parameters.{parameter.name}.directive)"
    build = component.build
    items = [item for command in build.commands for item in command] + [*build.env.values()] if build else []
    if _uses(items, parameter.name):
        yield "the build (build)"
    if any(parameter.name in {found for _, found in names_in_template(one.text)} for one in component.templates):
        yield "a file that is written for each trial (templates)"
    if _uses([item for command in component.header for item in command], parameter.name):
        yield "a command before the program (header)"
    if _uses(component.directives, parameter.name):
        yield "a line of the batch script (scheduler.directives)"
    known = component.applications.get(application)
    for one in [known] if known else component.applications.values():
        if _uses(_texts(one), parameter.name):
            yield f"the command or environment of an application (applications.{one.name})"


def _texts(application: Application) -> list[str]:
    return [*application.command, *application.env.values(), application.cwd]


def _is_written(component: Component, name: str) -> bool:
    return _uses([*component.env.values(), *component.preload, *component.scheduler_options], name)


def _uses(items: Sequence[str], name: str) -> bool:
    return any(name in names_in_argument(item) for item in items)
