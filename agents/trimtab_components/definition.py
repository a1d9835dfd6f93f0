"""Read the text of a component file and find its errors.

This module opens no file and starts no program. A subclass finds the files that a text refers to (the agent's
`components/loader.py`). Without one, for example in the service while somebody writes a component, `unseen` lists what
nobody has checked.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from trimtab_components import live_definition, parameter_definition, placeholders, tools
from trimtab_components.errors import Problem, UnsuitableValueError
from trimtab_components.metric_definition import METRIC_KEYS, PLAIN, STREAM_KEYS, TAKES, TOOL_KEYS, MetricReader
from trimtab_components.parameter_definition import read_unit
from trimtab_components.reader import Reader, Table
from trimtab_components.schema import (
    NAME,
    NAME_ALLOWED,
    Application,
    Build,
    Component,
    Condition,
    Domain,
    Injected,
    Metric,
    Need,
    Parameter,
    Range,
    Scalar,
    SettingsFile,
    Template,
)

# What a component says about injected delays and contention: one line.
INJECTED = r"\S(?:.{0,198}\S)?"
INJECTED_ALLOWED = "a noun phrase of at most 200 characters on one line, such as 'contention of the file server'"
TYPES = ("float", "int", "ordinal", "categorical", "boolean")
AGGREGATES = ("median", "min", "max", "mean")
FILE_KEYS = (
    "name",
    "description",
    "needs",
    "parameters",
    "parameters_from",
    "build",
    "env",
    "preload",
    "header",
    "templates",
    "settings",
    "scheduler",
    "applications",
    "metrics",
    "stream",
    "artifacts",
    "exit_codes",
    "injected",
    "live",
)
# What runs a program, which a live system does not need.
NOT_LIVE = (
    *("build", "env", "preload", "header", "templates", "scheduler", "applications", "metrics", "stream"),
    *("settings", "artifacts", "exit_codes"),
)
DELIVERY_KEYS = ("env", "flag", "scheduler", "directive")
PARAMETER_KEYS = (
    *("type", "description", "unit", "default", "condition", "omit_default", "group", "injected"),
    *DELIVERY_KEYS,
)
RANGE_KEYS = ("min", "max", "log", "step", "factor")
# What must be installed: names by kind, each with the package that brings it.
NEED_KEYS = ("programs", "modules", "files")
GENERATOR_KEYS = ("command", "timeout", "depends")
CONDITION_KEYS = ("parent", "values")
INJECTED_KEYS = ("text", "values")
BUILD_KEYS = ("sources", "commands", "depends", "env", "timeout")
TEMPLATE_KEYS = ("source", "target")
SETTINGS_KEYS = ("target", "line", "head")
SCHEDULER_KEYS = ("options", "directives")
APPLICATION_KEYS = (
    *("description", "command", "script", "env", "files", "cwd", "timeout", "repeats", "aggregate", "injected"),
)
EXIT_KEYS = ("failed",)
# The keys or words that are allowed at a place, as suggestions for people who write a file. A star stands for any name.
WORDS: Mapping[str, Sequence[str]] = {
    "": FILE_KEYS,
    "parameters.*": (*PARAMETER_KEYS, *RANGE_KEYS, "values", *parameter_definition.SWITCH_KEYS),
    "parameters.*.type": TYPES,
    "parameters.*.condition": CONDITION_KEYS,
    "parameters.*.injected": INJECTED_KEYS,
    "parameters.*.log": ("true", "false"),
    "parameters.*.omit_default": ("true", "false"),
    "needs": NEED_KEYS,
    "parameters_from": GENERATOR_KEYS,
    "build": BUILD_KEYS,
    "templates": TEMPLATE_KEYS,
    "settings": SETTINGS_KEYS,
    "scheduler": SCHEDULER_KEYS,
    "applications.*": APPLICATION_KEYS,
    "applications.*.aggregate": AGGREGATES,
    "metrics.*": (
        *PLAIN,
        *dict.fromkeys([*(key for keys in METRIC_KEYS.values() for key in keys), *TOOL_KEYS, *tools.FIELDS]),
    ),
    **{f"metrics.*.{tool}": fields for tool, fields in tools.FIELDS.items()},
    "metrics.*.type": tuple(METRIC_KEYS),
    "metrics.*.take": TAKES,
    "stream": STREAM_KEYS,
    "exit_codes": EXIT_KEYS,
    "live": live_definition.KEYS,
    **{f"live.{key}": live_definition.COMMAND_KEYS for key in ("apply", "revert", "verify", "fallback", "keep")},
    "live.metrics.*": tuple(dict.fromkeys(key for keys in live_definition.READING_KEYS.values() for key in keys)),
    "live.metrics.*.type": tuple(live_definition.READING_KEYS),
    "live.metrics.*.kind": live_definition.READING_KINDS,
    "live.guards.*": live_definition.GUARD_KEYS,
}


class Definition:
    """One pass over one text. It collects the placeholders in use, and what only the component's folder can tell."""

    def __init__(self, file: Path, text: str, reader: Reader, top: Table) -> None:
        self.file = file
        self.text = text
        self.reader = reader
        self.top = top
        self.used_names: set[str] = set()
        self.injected: list[Injected] = []
        self.parameters: dict[str, Parameter] = {}
        # the table of each parameter
        self.places: dict[str, Table] = {}
        # files and programs that nobody has checked
        self.unseen: list[str] = []
        # whether these may define or use parameters
        self.unseen_parameters = False
        self.unseen_uses = False

    def read(self) -> Component:
        """Return the component. It is valid only if the reader has found no errors."""
        top = self.top
        top.allow(FILE_KEYS)
        table = top.table("live")
        top.require("name", *(() if table else ("applications",)))
        if "injected" in top:
            self.injected.append(Injected(self._injected_text(top)))
        generated = self._parameters()
        component_env = self._environment(top)
        build = self._build()
        header = self._commands(top, "header")
        templates = self._templates()
        live = live_definition.read(table, self.find, self._is_parameter) if table else None
        applications = self._applications() if live is None else self._instances()
        metrics_read = MetricReader(top, self.find)
        metrics = metrics_read.metrics() if live is None else {name: Metric(name, "live") for name in live.readings}
        options, directives = self._scheduler()
        failed: tuple[int, ...] = ()
        if exits := top.table("exit_codes"):
            exits.allow(EXIT_KEYS)
            failed = exits.integers("failed")
            if any(not 1 <= code <= 255 for code in failed):
                exits.fault("failed", "an exit code is from 1 to 255; 0 is success")
        preload = top.texts("preload")
        self._check_items(top, "preload", preload, flags=False)
        if live is None:
            self._check_reach()
        if "build" in self.used_names and build is None:
            top.reader.report(None, "build", "is missing although {build} is used")
        return Component(
            name=top.text("name", pattern=NAME, allowed=NAME_ALLOWED),
            file=self.file,
            digest=self.digest(generated) if not self.reader.problems else "",
            file_digest=hashlib.sha256(self.text.encode()).hexdigest(),
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
            injected=tuple(self.injected),
            stream=metrics_read.streams(),
            artifacts=self._artifacts(),
            live=live,
            needs=read_needs(top),
            settings=self._settings(templates),
        )

    def _artifacts(self) -> tuple[str, ...]:
        patterns = self.top.texts("artifacts")
        for pattern in patterns:
            if not pattern or Path(pattern).is_absolute() or ".." in Path(pattern).parts or "\0" in pattern:
                self.top.fault("artifacts", f"{pattern!r} must be a path or pattern inside the trial's work folder")
        return patterns

    # -- checks that need the component's folder

    def digest(self, generated: str) -> str:
        """Return the digest of the text, the generated parameters and all files; "" if they were not read."""
        return ""

    def generate(self, table: Table, command: Sequence[str], timeout: float, depends: Sequence[str]) -> str:
        """Return the JSON text of the program that lists parameters; "" if it cannot run."""
        self.unseen.append(f"the parameters that {' '.join(command[:2])} prints")
        self.unseen_parameters = True
        return ""

    def find(self, table: Table, key: str, name: str) -> Path:
        """Return the path of a file that the component refers to."""
        self.unseen.append(name)
        return self.file.parent / name

    def find_all(self, table: Table, pattern: str) -> list[Path]:
        """Return the sources of a build that match a pattern."""
        self.unseen.append(pattern)
        return []

    def template(self, table: Table, source: Path) -> str | None:
        """Return the text of a template, or None."""
        self.unseen_uses = True
        return None

    def script(self, table: Table, path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the command that runs a user's batch script, and its scheduler lines."""
        return (), ()

    # -- parameters

    def _parameters(self) -> str:
        """Fill `self.parameters` and return the generated text, which is part of the digest."""
        generated = ""
        tables: dict[str, Table] = {}
        if source := self.top.table("parameters_from"):
            source.allow(GENERATOR_KEYS)
            source.require("command")
            command = source.argv("command")
            timeout = source.seconds("timeout", 60.0, above=0)
            depends = source.texts("depends")
            if command and not self.reader.problems:
                generated = self.generate(source, command, timeout, depends)
                if generated:
                    tables.update(self._generated_tables(generated, command))
        tables.update(self.top.tables("parameters"))
        self.places = tables
        for name, table in tables.items():
            if (parameter := self._parameter(name, table)) is not None:
                self.parameters[name] = parameter
        self._check_conditions()
        return generated

    def _generated_tables(self, generated: str, command: Sequence[str]) -> dict[str, Table]:
        # JSON is YAML, so one reader serves both. Its errors name the program and the line of its output.
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
            table.reader.report(table.node, table.field, f"{name!r} is a reserved placeholder; rename the parameter")
        table.require("type", "default")
        if "type" not in table:
            return None
        kind = table.choice("type", TYPES, "boolean")
        if kind in ("float", "int"):
            table.allow((*PARAMETER_KEYS, *RANGE_KEYS))
        elif kind in ("ordinal", "categorical"):
            table.allow((*PARAMETER_KEYS, "values"))
        else:
            table.allow((*PARAMETER_KEYS, *parameter_definition.SWITCH_KEYS))
        domain = parameter_definition.read_domain(kind, table)
        default = table.scalar("default")
        condition = None
        if inner := table.table("condition"):
            inner.allow(CONDITION_KEYS)
            inner.require("parent", "values")
            condition = Condition(inner.text("parent"), inner.scalars("values"))
            if "values" in inner and not condition.values:
                inner.fault("values", "must name at least one value of the parent")
        env = parameter_definition.read_variable(name, domain, table)
        forms = {key: parameter_definition.read_form(key, domain, table) for key in ("flag", "scheduler", "directive")}
        group = table.text("group", pattern=NAME, allowed=NAME_ALLOWED)
        unit = read_unit(table)
        if group and "flag" not in table:
            table.fault("group", "is only valid together with `flag`")
        if kind == "boolean" and table.text("on", "true") == table.text("off", "false"):
            key = "on" if "on" in table else "off"
            table.fault(key, "on and off are the same text, so that no value would have an effect")
        if inner := table.table("injected"):
            self._parameter_injected(name, domain, inner)
        if len(self.reader.problems) > before or default is None:
            return None
        try:
            default = domain.cast(default)
        except UnsuitableValueError as error:
            table.fault("default", str(error))
            return None
        if isinstance(domain, Range) and not domain.has_on_grid(cast(float, default)):
            table.fault("default", f"{default!r} is not on the grid that starts at min with this step or factor")
            return None
        return Parameter(
            name=name,
            domain=domain,
            default=default,
            description=table.text("description").strip(),
            unit=unit,
            condition=condition,
            omit_default=table.flag("omit_default"),
            env=env,
            flag=forms["flag"],
            group=group,
            scheduler=forms["scheduler"],
            directive=forms["directive"],
            on=table.text("on", "true"),
            off=table.text("off", "false"),
        )

    def _parameter_injected(self, name: str, domain: Domain, table: Table) -> None:
        """Note the values of a parameter that inject something."""
        table.allow(INJECTED_KEYS)
        table.require("text", "values")
        values: list[Scalar] = []
        for value in table.scalars("values"):
            try:
                values.append(domain.cast(value))
            except UnsuitableValueError as error:
                table.fault("values", str(error))
        if "values" in table and not values:
            table.fault("values", "must name at least one value of the parameter")
        self.injected.append(Injected(self._injected_text(table, "text"), "", name, tuple(values)))

    def _injected_text(self, table: Table, key: str = "injected") -> str:
        return table.text(key, pattern=INJECTED, allowed=INJECTED_ALLOWED)

    def _check_conditions(self) -> None:
        for name, parameter in self.parameters.items():
            condition = parameter.condition
            if condition is None:
                continue
            table = self.places[name]
            parent = self.parameters.get(condition.parent)
            if parent is None:
                if condition.parent not in self.places and not self.unseen_parameters:  # its errors are reported
                    table.fault("condition", f"parent {condition.parent!r} is not a parameter of this file")
                continue
            if isinstance(parent.domain, Range) and parent.domain.is_continuum:
                message = f"parent {condition.parent!r} is continuous; it needs step, factor or a list of values"
                table.fault("condition", message)
            for value in condition.values:
                try:
                    parent.domain.cast(value)
                except UnsuitableValueError as error:
                    table.fault("condition", f"value of {condition.parent!r}: {error}")
            seen = [name]
            while parent is not None and parent.condition is not None:
                if parent.name in seen:
                    table.fault("condition", f"is circular: {' -> '.join([*seen, parent.name])}")
                    break
                seen.append(parent.name)
                parent = self.parameters.get(parent.condition.parent)

    def _check_reach(self) -> None:
        """Report parameters that do not reach the system, and groups of flags that no command uses."""
        for name, parameter in self.parameters.items():
            delivered = (parameter.env, parameter.flag, parameter.scheduler, parameter.directive)
            if not any(delivered) and name not in self.used_names and not self.unseen_uses:
                self.reader.report(
                    self.top.at("parameters"),
                    f"parameters.{name}",
                    f"its value is not used: give one of {', '.join(DELIVERY_KEYS)}, "
                    f"or use {{{name}}} in a command or ${{{name}}} in a template",
                )
            if parameter.group and f"flags:{parameter.group}" not in self.used_names:
                self.reader.report(
                    self.top.at("parameters"),
                    f"parameters.{name}.group",
                    f"no command contains {{flags:{parameter.group}}}",
                )

    # -- commands

    def _check_items(self, table: Table, key: str, items: Sequence[str], *, flags: bool = True) -> None:
        """Report unknown placeholders and note the others as used."""
        for item in items:
            try:
                names = placeholders.names_in_argument(item)
            except ValueError as error:
                table.fault(key, f"{item!r}: {error}")
                continue
            for name in names:
                if name == "flags" or name.startswith("flags:"):
                    if not flags or not placeholders.is_flags(item):
                        table.fault(key, f"{item!r}: {{{name}}} must be a separate item of a command")
                    group = name.partition(":")[2]
                    groups = {parameter.group for parameter in self.parameters.values()}
                    all_known = len(self.parameters) == len(self.places) and not self.unseen_parameters
                    if group and group not in groups and all_known:
                        table.fault(key, f"{item!r}: no parameter has the group {group!r}")
                elif not self._means_something(name):
                    table.fault(
                        key, f"{item!r}: {{{name}}} is not one of {self._allowed_names()}; write a literal brace twice"
                    )
                self.used_names.add(name)

    def _means_something(self, name: str) -> bool:
        return name in placeholders.PLACES or self._is_parameter(name)

    def _is_parameter(self, name: str) -> bool:
        # The errors of a parameter are reported already.
        return name in self.places or self.unseen_parameters

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
            if not re.fullmatch(parameter_definition.VARIABLE, name):
                table.fault("env", f"{name!r} is not {parameter_definition.VARIABLE_ALLOWED}")
            self._check_items(table, "env", [value], flags=False)
        return env

    def _build(self) -> Build | None:
        table = self.top.table("build")
        if table is None:
            return None
        table.allow(BUILD_KEYS)
        table.require("commands")
        sources: list[Path] = []
        for pattern in table.texts("sources"):
            if pattern and not Path(pattern).is_absolute():
                sources += self.find_all(table, pattern)
            else:
                table.fault("sources", f"{pattern!r} must be a pattern relative to the component's folder")
        commands = self._commands(table, "commands")
        env = self._environment(table)
        for key, items in (
            ("commands", [item for command in commands for item in command]),
            ("env", list(env.values())),
        ):
            if any("{work}" in item for item in items):
                table.fault(key, "{work} is a trial's own folder, but trials share a build; use {build}")
        return Build(commands, tuple(sources), table.texts("depends"), env, table.seconds("timeout", 600.0, above=0))

    def _templates(self) -> tuple[Template, ...]:
        templates = []
        for table in self.top.list_of_tables("templates"):
            table.allow(TEMPLATE_KEYS)
            table.require("source", "target")
            name, target = table.text("source"), table.text("target")
            if Path(target).is_absolute() or ".." in Path(target).parts:
                table.fault("target", f"{target!r} must be a path inside the trial's work folder")
            if not name:
                continue
            source = self.find(table, "source", name)
            text = self.template(table, source)
            if text is None:
                continue
            for line, used in placeholders.names_in_template(text):
                if not self._means_something(used):
                    allowed = self._allowed_names().replace("{", "${")
                    message = f"${{{used}}} is not one of {allowed}; write a literal ${{ as $${{"
                    self.reader.problems.append(Problem(str(source), line, table.path("source"), message))
                self.used_names.add(used)
            templates.append(Template(source, target, text))
        return tuple(templates)

    def _settings(self, templates: Sequence[Template]) -> SettingsFile | None:
        table = self.top.table("settings")
        if table is None:
            return None
        table.allow(SETTINGS_KEYS)
        table.require("target", "line")
        target, line = table.text("target"), table.text("line")
        if Path(target).is_absolute() or ".." in Path(target).parts:
            table.fault("target", f"{target!r} must be the name of a file")
        if "\n" in line or not all(place in line for place in ("{name}", "{value}")):
            table.fault("line", f"{line!r} must be one line with {{name}} and {{value}}")
        if templates:
            self.top.fault("settings", "is not needed with templates, which give the file")
        return SettingsFile(target, line, table.text("head"))

    def _scheduler(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        table = self.top.table("scheduler")
        if table is None:
            return (), ()
        table.allow(SCHEDULER_KEYS)
        options, directives = table.texts("options"), table.texts("directives")
        self._check_items(table, "options", options, flags=False)
        self._check_items(table, "directives", directives, flags=False)
        for line in directives:
            if not line.startswith("#") or line.startswith(("#!", "#SBATCH")):
                table.fault(
                    "directives", f"{line!r} must start with '#', such as '#BB'; put #SBATCH options under `options`"
                )
        return options, directives

    def _applications(self) -> dict[str, Application]:
        applications = {}
        if "applications" in self.top and not self.top.tables("applications") and not self.reader.problems:
            self.top.fault("applications", "must name at least one application")
        for name, table in self.top.tables("applications"):
            if not re.fullmatch(NAME, name):
                self.reader.report(table.node, table.field, f"{name!r} is not {NAME_ALLOWED}")
            table.allow(APPLICATION_KEYS)
            command = table.argv("command")
            directives: tuple[str, ...] = ()
            if "script" in table:
                if "command" in table:
                    table.fault("script", "command and script are both given; give one of them")
                command, directives = self.script(table, self.find(table, "script", table.text("script")))
            else:
                table.require("command")
            self._check_items(table, "command", command)
            if "injected" in table:
                self.injected.append(Injected(self._injected_text(table), name))
            cwd = table.text("cwd", "{work}")
            self._check_items(table, "cwd", [cwd], flags=False)
            applications[name] = Application(
                name=name,
                command=command,
                description=table.text("description").strip(),
                env=self._environment(table),
                files=tuple(self.find(table, "files", file) for file in table.texts("files")),
                cwd=cwd,
                is_script="script" in table,
                directives=directives,
                timeout=table.seconds("timeout", 3600.0, above=0),
                repeats=table.integer("repeats", 1, minimum=1),
                aggregate=cast(Any, table.choice("aggregate", AGGREGATES, "median")),
            )
        return applications

    def _instances(self) -> dict[str, Application]:
        """Return the instances of a live system: applications without a command."""
        table = self.top.table("live")
        assert table is not None
        for key in NOT_LIVE:
            if key in self.top:
                self.top.fault(key, "is not allowed with `live`, whose commands apply the values of all parameters")
        for name in (names := table.texts("instances")):
            if not re.fullmatch(NAME, name):
                table.fault("instances", f"{name!r} is not {NAME_ALLOWED}")
        if "instances" in table and not names:
            table.fault("instances", "must name at least one instance")
        return {name: Application(name, ()) for name in names}


def read_needs(top: Table) -> tuple[Need, ...]:
    """Return what the key `needs` of a file names."""
    table = top.table("needs")
    if table is None:
        return ()
    table.allow(NEED_KEYS)
    kinds: Mapping[str, Literal["program", "module", "file"]] = dict(
        zip(NEED_KEYS, ("program", "module", "file"), strict=True)
    )
    return tuple(
        Need(kind, name, package)
        for key, kind in kinds.items()
        for name, package in table.mapping_of_texts(key).items()
    )
