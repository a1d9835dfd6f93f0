"""Component files, from YAML to `Component`. Everything wrong with all of them is told at once, before the agent
starts."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from trimtab_agent.components import batch_script, placeholders
from trimtab_agent.components.generated import Generator, GeneratorError
from trimtab_agent.components.reader import Reader, Table
from trimtab_agent.components.schema import (
    Application,
    Build,
    Choices,
    Component,
    Condition,
    Domain,
    Form,
    Metric,
    Parameter,
    Range,
    Stream,
    Switch,
    Template,
)
from trimtab_agent.errors import ComponentError, Problem, UnsuitableValueError

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
NAME_ALLOWED = "a name: letters, digits, '.', '_' and '-', at most 63, the first a letter or digit"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
VARIABLE_ALLOWED = "a variable's name: letters, digits and '_', the first not a digit"
FUNCTION = r"[^:]+\.py:[A-Za-z_][A-Za-z0-9_]*"

TYPES = ("float", "int", "ordinal", "categorical", "boolean")
FILE_KEYS = (
    "name",
    "description",
    "parameters",
    "parameters_from",
    "build",
    "env",
    "preload",
    "header",
    "templates",
    "scheduler",
    "applications",
    "metrics",
    "stream",
    "exit_codes",
)
DELIVERY_KEYS = ("env", "flag", "scheduler", "directive")
PARAMETER_KEYS = ("type", "description", "default", "condition", "omit_default", "group", *DELIVERY_KEYS)
RANGE_KEYS = ("min", "max", "log", "step", "factor")
METRIC_KEYS = {
    "wall_time": ("type",),
    "regex": ("type", "pattern", "from", "take"),
    "json": ("type", "path", "from"),
    "python": ("type", "function", "timeout"),
}
# the group that says which step a measurement belongs to
STEP = "step"
TAKES = ("last", "first", "min", "max", "mean", "sum")


def load_all(location: Path, generator: Generator) -> dict[str, Component]:
    """Every component of `location`: a file, or a folder with files `*.yaml` and `NAME/component.yaml`.

    Raises:
        ComponentError: with every fault of every file.
    """
    files = find_files(location)
    components: dict[str, Component] = {}
    problems: list[Problem] = []
    if not files:
        problems.append(
            Problem(str(location), 1, "components", "no component file here: expected NAME/component.yaml or *.yaml")
        )
    for file in files:
        try:
            component = load(file, generator)
        except ComponentError as error:
            problems += error.problems
            continue
        if component.name in components:
            message = f"{component.name!r} is already the name of {components[component.name].file}"
            problems.append(Problem(str(file), 1, "name", message))
        components[component.name] = component
    if problems:
        raise ComponentError(problems)
    return components


def find_files(location: Path) -> list[Path]:
    """The component files at `location`."""
    if location.is_file():
        return [location.absolute()]
    return sorted(path.absolute() for path in [*location.glob("*.yaml"), *location.glob("*/component.yaml")])


def load(file: Path, generator: Generator) -> Component:
    """One component file.

    Raises:
        ComponentError: with every fault of the file.
    """
    file = file.absolute()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ComponentError([Problem(str(file), 1, "file", f"cannot be read: {error}")]) from None
    reader = Reader(str(file))
    top = reader.parse(text)
    component = _FileLoader(file, text, reader, top, generator).load() if top else None
    if reader.problems or component is None:
        raise ComponentError(reader.problems)
    return component


class _FileLoader:
    """One pass over one file. What it collects on the way: the files that the component refers to, and the
    placeholders in use."""

    def __init__(self, file: Path, text: str, reader: Reader, top: Table, generator: Generator) -> None:
        self.file = file
        self.text = text
        self.reader = reader
        self.top = top
        self.generator = generator
        self.referred: set[Path] = set()
        self.used_names: set[str] = set()
        self.parameters: dict[str, Parameter] = {}

    def load(self) -> Component:
        top = self.top
        top.allow(FILE_KEYS)
        top.require("name", "applications")
        generated = self._parameters()
        component_env = self._environment(top)
        build = self._build()
        header = self._commands(top, "header")
        templates = self._templates()
        applications = self._applications()
        metrics = self._metrics()
        options, directives = self._scheduler()
        failed: tuple[int, ...] = ()
        if exits := top.table("exit_codes"):
            exits.allow(("failed",))
            failed = exits.integers("failed")
            if any(not 1 <= code <= 255 for code in failed):
                exits.fault("failed", "an exit code is from 1 to 255; 0 is success")
        preload = top.texts("preload")
        self._check_items(top, "preload", preload, flags=False)
        self._check_reach()
        if "build" in self.used_names and build is None:
            top.reader.report(None, "build", "is missing, but {build} is used")
        return Component(
            name=top.text("name", pattern=NAME, allowed=NAME_ALLOWED),
            file=self.file,
            digest=self._digest(generated) if not self.reader.problems else "",
            description=top.text("description").strip(),
            parameters=self.parameters,
            applications=applications,
            metrics=metrics,
            build=build,
            env=component_env,
            preload=preload,
            header=header,
            templates=templates,
            scheduler_options=options,
            directives=directives,
            failed_exit_codes=failed,
            stream=self._stream(),
        )

    def _digest(self, generated: str) -> str:
        sha = hashlib.sha256(self.text.encode())
        sha.update(generated.encode())
        for path in sorted(self.referred):
            name = os.path.relpath(path, self.file.parent)
            sha.update(f"\0{name}\0{path.stat().st_size}\0".encode())
            sha.update(path.read_bytes())
        return sha.hexdigest()

    # -- parameters

    def _parameters(self) -> str:
        """Fills `self.parameters`; answers with the generated text, which is part of the digest."""
        generated = ""
        tables: dict[str, Table] = {}
        if source := self.top.table("parameters_from"):
            source.allow(("command", "timeout", "depends"))
            source.require("command")
            command = source.argv("command")
            timeout = source.number("timeout", 60.0, above=0)
            depends = source.texts("depends")
            if command and not self.reader.problems:
                try:
                    generated = self.generator.run(self.file, command, timeout, depends)
                except GeneratorError as error:
                    source.fault("command", str(error))
                else:
                    tables.update(self._generated_tables(generated, command))
        tables.update(self.top.tables("parameters"))
        where: dict[str, Table] = {}
        for name, table in tables.items():
            where[name] = table
            if (parameter := self._parameter(name, table)) is not None:
                self.parameters[name] = parameter
        self._check_conditions(where)
        return generated

    def _generated_tables(self, generated: str, command: Sequence[str]) -> dict[str, Table]:
        # JSON is YAML, so that one reader serves both; its faults carry the program's name and the line of its output
        table = Reader(f"<output of {' '.join(command)}>", self.reader.problems).parse(generated)
        if table is None:
            return {}
        table.allow(("parameters",))
        table.require("parameters")
        return dict(table.tables("parameters"))

    def _parameter(self, name: str, table: Table) -> Parameter | None:
        before = len(self.reader.problems)
        if not re.fullmatch(NAME, name):
            table.reader.report(table.node, table.field, f"{name!r} is not {NAME_ALLOWED}")
        if name in placeholders.RESERVED:
            table.reader.report(
                table.node, table.field, f"{name!r} has a meaning of its own in braces; call the parameter otherwise"
            )
        table.require("type", "default")
        if "type" not in table:
            return None
        kind = table.choice("type", TYPES, "boolean")
        if kind in ("float", "int"):
            table.allow((*PARAMETER_KEYS, *RANGE_KEYS))
        elif kind in ("ordinal", "categorical"):
            table.allow((*PARAMETER_KEYS, "values"))
        else:
            table.allow(PARAMETER_KEYS)
        domain = self._domain(kind, table)
        default = table.scalar("default")
        condition = None
        if inner := table.table("condition"):
            inner.allow(("parent", "values"))
            inner.require("parent", "values")
            condition = Condition(inner.text("parent"), inner.scalars("values"))
            if "values" in inner and not condition.values:
                inner.fault("values", "must name at least one value of the parent")
        env = self._env_delivery(name, domain, table)
        forms = {key: self._form(key, domain, table) for key in ("flag", "scheduler", "directive")}
        group = table.text("group", pattern=NAME, allowed=NAME_ALLOWED)
        if group and "flag" not in table:
            table.fault("group", "has a meaning only beside `flag`")
        if len(self.reader.problems) > before or default is None:
            return None
        try:
            default = domain.cast(default)
        except UnsuitableValueError as error:
            table.fault("default", str(error))
            return None
        return Parameter(
            name=name,
            domain=domain,
            default=default,
            description=table.text("description").strip(),
            condition=condition,
            omit_default=table.flag("omit_default"),
            env=env,
            flag=forms["flag"],
            group=group,
            scheduler=forms["scheduler"],
            directive=forms["directive"],
        )

    def _domain(self, kind: str, table: Table) -> Domain:
        if kind == "boolean":
            return Switch()
        if kind in ("ordinal", "categorical"):
            table.require("values")
            values = table.scalars("values")
            if "values" in table and len(values) < 2:
                table.fault("values", "must hold at least two values")
            if len({(isinstance(value, bool), value) for value in values}) < len(values):
                table.fault("values", "a value stands twice")
            return Choices(kind == "ordinal", values)
        return self._range(cast(Literal["float", "int"], kind), table)

    def _range(self, kind: Literal["float", "int"], table: Table) -> Range:
        table.require("min", "max")
        if kind == "int":
            low: float = table.integer("min")
            high: float = table.integer("max", 1)
            step: float | None = table.integer("step", minimum=1) if "step" in table else None
        else:
            low, high = table.number("min"), table.number("max", 1.0)
            step = table.number("step", above=0) if "step" in table else None
        factor = table.number("factor", above=1) if "factor" in table else None
        log = table.flag("log")
        if "min" in table and "max" in table and low >= high:
            table.fault("min", f"{low!r} is not below max, {high!r}")
        if step is not None and factor is not None:
            table.fault("factor", "give either step (additive grid) or factor (multiplicative grid), not both")
        if (log or factor is not None) and low <= 0:
            table.fault("min", f"{low!r} is not above 0, as log and factor need")
        if step is not None and step > high - low:
            table.fault("step", f"{step!r} is greater than max - min, {high - low!r}")
        return Range(kind, low, high, log, step, factor)

    def _env_delivery(self, name: str, domain: Domain, table: Table) -> tuple[str, Form] | None:
        if "env" not in table:
            return None
        if not table.is_table("env"):
            variable = table.text("env", pattern=VARIABLE, allowed=VARIABLE_ALLOWED)
            return variable, Form(("{value}",))
        inner = table.table("env")
        assert inner is not None
        inner.allow(("name", "value", "on", "off"))
        inner.require("name")
        variable = inner.text("name", name, pattern=VARIABLE, allowed=VARIABLE_ALLOWED)
        if "on" not in inner and "off" not in inner:
            return variable, Form((inner.text("value", "{value}"),))
        if not isinstance(domain, Switch):
            inner.fault("on" if "on" in inner else "off", "on and off are for booleans; use value: text with {value}")
        on = (inner.text("on"),) if "on" in inner else None
        off = (inner.text("off"),) if "off" in inner else None
        return variable, Form(on=on, off=off)

    def _form(self, key: str, domain: Domain, table: Table) -> Form | None:
        if key not in table:
            return None
        if not table.is_table(key):
            items = table.text_or_texts(key)
            if isinstance(domain, Switch) and not any("{value}" in item for item in items):
                table.fault(
                    key,
                    f"a boolean needs {key}: {{on: ..., off: ...}}, or a text with {{value}} (true or false)",
                )
            elif not isinstance(domain, Switch) and not any("{value}" in item for item in items):
                table.fault(key, "must hold {value}, where the value is to stand")
            self._check_form_names(key, table, items)
            return Form(items)
        inner = table.table(key)
        assert inner is not None
        inner.allow(("on", "off"))
        if not isinstance(domain, Switch):
            table.fault(key, "on and off are for booleans; give a text with {value}")
        if "on" not in inner and "off" not in inner:
            table.fault(key, "needs on, off or both")
        on = inner.text_or_texts("on") if "on" in inner else None
        off = inner.text_or_texts("off") if "off" in inner else None
        self._check_form_names(key, table, (*(on or ()), *(off or ())))
        return Form(on=on, off=off)

    def _check_form_names(self, key: str, table: Table, items: Sequence[str]) -> None:
        for item in items:
            for name in re.findall(r"\{([A-Za-z_]\w*)\}", item):
                if name not in ("name", "value"):
                    table.fault(key, f"{{{name}}} is not one of {{name}}, {{value}}")

    def _check_conditions(self, where: Mapping[str, Table]) -> None:
        for name, parameter in self.parameters.items():
            condition = parameter.condition
            if condition is None:
                continue
            table = where[name]
            parent = self.parameters.get(condition.parent)
            if parent is None:
                if condition.parent not in where:  # a faulty parent has been told already
                    table.fault("condition", f"parent {condition.parent!r} is not a parameter of this file")
                continue
            for value in condition.values:
                try:
                    parent.domain.cast(value)
                except UnsuitableValueError as error:
                    table.fault("condition", f"value of {condition.parent!r}: {error}")
            seen = [name]
            while parent is not None and parent.condition is not None:
                if parent.name in seen:
                    table.fault("condition", f"goes in a circle: {' -> '.join([*seen, parent.name])}")
                    break
                seen.append(parent.name)
                parent = self.parameters.get(parent.condition.parent)

    def _check_reach(self) -> None:
        """Every parameter must reach the system in some way; every group of flags must stand somewhere."""
        for name, parameter in self.parameters.items():
            delivered = (parameter.env, parameter.flag, parameter.scheduler, parameter.directive)
            if not any(delivered) and name not in self.used_names:
                self.reader.report(
                    self.top.at("parameters"),
                    f"parameters.{name}",
                    f"its value reaches nothing: give one of {', '.join(DELIVERY_KEYS)}, "
                    f"or use {{{name}}} in a command or ${{{name}}} in a template",
                )
            if parameter.group and f"flags:{parameter.group}" not in self.used_names:
                self.reader.report(
                    self.top.at("parameters"),
                    f"parameters.{name}.group",
                    f"{{flags:{parameter.group}}} stands in no command",
                )

    # -- commands

    def _check_items(self, table: Table, key: str, items: Sequence[str], *, flags: bool = True) -> None:
        """Notes placeholders that mean nothing."""
        for item in items:
            try:
                names = placeholders.names_in_argument(item)
            except ValueError as error:
                table.fault(key, f"{item!r}: {error}")
                continue
            for name in names:
                if name == "flags" or name.startswith("flags:"):
                    if not flags or not placeholders.is_flags(item):
                        table.fault(key, f"{item!r}: {{{name}}} must be an item of a command, alone")
                    group = name.partition(":")[2]
                    if group and all(parameter.group != group for parameter in self.parameters.values()):
                        table.fault(key, f"{item!r}: no parameter has group {group!r}")
                elif name not in placeholders.PLACES and name not in self.parameters:
                    table.fault(
                        key, f"{item!r}: {{{name}}} is not one of {self._allowed_names()}; a literal brace is doubled"
                    )
                self.used_names.add(name)

    def _allowed_names(self) -> str:
        shown = [f"{{{name}}}" for name in (*placeholders.PLACES, *self.parameters)]
        return ", ".join(shown[:12]) + (", ..." if len(shown) > 12 else "")

    def _commands(self, table: Table, key: str) -> tuple[tuple[str, ...], ...]:
        commands = table.argvs(key)
        for command in commands:
            self._check_items(table, key, command)
        return commands

    def _environment(self, table: Table) -> dict[str, str]:
        env = table.mapping_of_texts("env")
        for name, value in env.items():
            if not re.fullmatch(VARIABLE, name):
                table.fault("env", f"{name!r} is not {VARIABLE_ALLOWED}")
            self._check_items(table, "env", [value], flags=False)
        return env

    def _file(self, table: Table, key: str, name: str) -> Path:
        """A file that the component refers to."""
        path = self.file.parent / name
        if not path.is_file():
            table.fault(key, f"{name!r} is not a file in {self.file.parent}")
        else:
            self.referred.add(path)
        return path

    def _build(self) -> Build | None:
        table = self.top.table("build")
        if table is None:
            return None
        table.allow(("sources", "commands", "depends", "env", "timeout"))
        table.require("commands")
        sources: list[Path] = []
        for pattern in table.texts("sources"):
            found = (
                []
                if Path(pattern).is_absolute()
                else sorted(path for path in self.file.parent.glob(pattern) if path.is_file())
            )
            if not found:
                table.fault(
                    "sources", f"{pattern!r} matches no file in {self.file.parent}; patterns are relative to it"
                )
            sources += found
        self.referred.update(sources)
        commands = self._commands(table, "commands")
        env = self._environment(table)
        for key, items in (
            ("commands", [item for command in commands for item in command]),
            ("env", list(env.values())),
        ):
            if any("{work}" in item for item in items):
                table.fault(key, "{work} is a trial's own folder, but a build is shared by trials: use {build}")
        return Build(commands, tuple(sources), table.texts("depends"), env, table.number("timeout", 600.0, above=0))

    def _templates(self) -> tuple[Template, ...]:
        templates = []
        for table in self.top.list_of_tables("templates"):
            table.allow(("source", "target"))
            table.require("source", "target")
            name, target = table.text("source"), table.text("target")
            if Path(target).is_absolute() or ".." in Path(target).parts:
                table.fault("target", f"{target!r} must be a path inside the trial's work folder")
            if not name:
                continue
            source = self._file(table, "source", name)
            if not source.is_file():
                continue
            text = source.read_text(encoding="utf-8")
            for line, used in placeholders.names_in_template(text):
                if used not in placeholders.PLACES and used not in self.parameters:
                    allowed = self._allowed_names().replace("{", "${")
                    message = f"${{{used}}} is not one of {allowed}; a literal ${{ is written $${{"
                    self.reader.problems.append(Problem(str(source), line, table.path("source"), message))
                self.used_names.add(used)
            templates.append(Template(source, target, text))
        return tuple(templates)

    def _scheduler(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        table = self.top.table("scheduler")
        if table is None:
            return (), ()
        table.allow(("options", "directives"))
        options, directives = table.texts("options"), table.texts("directives")
        self._check_items(table, "options", options, flags=False)
        self._check_items(table, "directives", directives, flags=False)
        for line in directives:
            if not line.startswith("#") or line.startswith(("#!", "#SBATCH")):
                table.fault(
                    "directives", f"{line!r} must start with '#', as '#BB' does; what #SBATCH says goes to options"
                )
        return options, directives

    def _applications(self) -> dict[str, Application]:
        applications = {}
        if "applications" in self.top and not self.top.tables("applications") and not self.reader.problems:
            self.top.fault("applications", "must name at least one application")
        for name, table in self.top.tables("applications"):
            if not re.fullmatch(NAME, name):
                self.reader.report(table.node, table.field, f"{name!r} is not {NAME_ALLOWED}")
            table.allow(("description", "command", "script", "env", "files", "cwd", "timeout", "repeats", "aggregate"))
            command = table.argv("command")
            directives: tuple[str, ...] = ()
            if "script" in table:
                command, directives = self._script(table)
            else:
                table.require("command")
            self._check_items(table, "command", command)
            cwd = table.text("cwd", "{work}")
            self._check_items(table, "cwd", [cwd], flags=False)
            applications[name] = Application(
                name=name,
                command=command,
                description=table.text("description").strip(),
                env=self._environment(table),
                files=tuple(self._file(table, "files", file) for file in table.texts("files")),
                cwd=cwd,
                is_script="script" in table,
                directives=directives,
                timeout=table.number("timeout", 3600.0, above=0),
                repeats=table.integer("repeats", 1, minimum=1),
                aggregate=cast(Any, table.choice("aggregate", ("median", "min", "max", "mean"), "median")),
            )
        return applications

    def _script(self, table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """A user's own batch script: the command that runs it, and its lines for the scheduler."""
        if "command" in table:
            table.fault("script", "give either command or script, not both")
        name = table.text("script")
        path = self._file(table, "script", name)
        if not path.is_file():
            return (), ()
        try:
            script = batch_script.parse(path.read_bytes())
        except batch_script.BatchScriptError as error:
            self.reader.problems.append(Problem(str(path), error.line, table.path("script"), str(error)))
            return (), ()
        command = tuple(item.replace("{", "{{").replace("}", "}}") for item in (*script.interpreter, str(path)))
        return command, script.directives

    # -- metrics

    def _metrics(self) -> dict[str, Metric]:
        if "metrics" not in self.top:
            return {"seconds": Metric("seconds", "wall_time")}
        outer = self.top.table("metrics")
        metrics: dict[str, Metric] = {}
        for name in outer or ():
            assert outer is not None
            if not re.fullmatch(NAME, name):
                outer.fault(name, f"{name!r} is not {NAME_ALLOWED}")
            if outer.is_table(name):
                table = outer.table(name)
                assert table is not None
                metrics[name] = self._metric(name, table)
            elif outer.text(name) == "wall_time":
                metrics[name] = Metric(name, "wall_time")
            else:
                outer.fault(name, "must be wall_time or a mapping with type: " + ", ".join(METRIC_KEYS))
        if outer is not None and not metrics:
            self.top.fault("metrics", "must name at least one metric")
        return metrics

    def _stream(self) -> tuple[Stream, ...]:
        streams = []
        for table in self.top.list_of_tables("stream"):
            table.allow(("from", "pattern"))
            source, pattern = self._source(table), table.text("pattern")
            try:
                if "pattern" in table and not set(re.compile(pattern).groupindex) - {STEP}:
                    table.fault(
                        "pattern",
                        "must have a group (?P<METRIC>...) around a number, beside (?P<step>...) for the step",
                    )
            except re.error as error:
                table.fault("pattern", f"is not a regular expression: {error}")
            streams.append(Stream(source, pattern))
        return tuple(streams)

    def _source(self, table: Table) -> str:
        source = table.text("from", "stdout")
        if Path(source).is_absolute() or ".." in Path(source).parts:
            table.fault("from", f"{source!r} is not stdout, stderr or a path inside the trial's work folder")
        return source

    def _metric(self, name: str, table: Table) -> Metric:
        table.require("type")
        kind = table.choice("type", tuple(METRIC_KEYS), "wall_time") if "type" in table else "wall_time"
        if "type" in table:
            table.allow(METRIC_KEYS[kind])
        source = self._source(table)
        if kind == "regex":
            table.require("pattern")
            pattern = table.text("pattern")
            try:
                if "pattern" in table and re.compile(pattern).groups < 1:
                    table.fault("pattern", "must have a group, in parentheses, around the number")
            except re.error as error:
                table.fault("pattern", f"is not a regular expression: {error}")
            return Metric(name, "regex", source, pattern=pattern, take=table.choice("take", TAKES, "last"))
        if kind == "json":
            table.require("path")
            return Metric(name, "json", source, path=table.text("path"))
        if kind == "python":
            table.require("function")
            written = table.text("function", pattern=FUNCTION, allowed="FILE.py:FUNCTION")
            file_name, _, function = written.partition(":")
            file = self._file(table, "function", file_name) if function else None
            return Metric(name, "python", file=file, function=function, timeout=table.number("timeout", 60.0, above=0))
        return Metric(name, "wall_time")
