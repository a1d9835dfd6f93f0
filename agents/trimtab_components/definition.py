"""Read the text of a component file and find its errors.

This module opens no file and starts no program. A subclass finds the files that a text refers to (the agent's
`components/loader.py`). Without one, for example in the service while somebody writes a component, `unseen` lists what
nobody has checked.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from trimtab_components import live_definition, placeholders, tools
from trimtab_components.errors import Problem, UnsuitableValueError
from trimtab_components.reader import Reader, Table
from trimtab_components.schema import (
    Application,
    Build,
    Choices,
    Component,
    Condition,
    Domain,
    Form,
    Injected,
    Metric,
    Need,
    Parameter,
    Range,
    Scalar,
    Stream,
    Switch,
    Template,
)

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
NAME_ALLOWED = "a name: letters, digits, '.', '_' and '-', at most 63, the first a letter or digit"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
VARIABLE_ALLOWED = "a variable's name: letters, digits and '_', the first not a digit"
PROCESS = r"[^\s/][^/]{0,63}"
PROCESS_ALLOWED = "the name of a server's processes, as `ps -o comm` shows it"
FUNCTION = r"[^:]+\.py:[A-Za-z_][A-Za-z0-9_]*"

# Maximum length of a string value of an ordinal or categorical parameter.
LONGEST_CHOICE = 1000
# Characters of one regular expression, and of all in a component. The service compiles them for everybody who may read.
LONGEST_PATTERN = 500
MOST_PATTERN_CHARACTERS = 2000
# The range of a PromQL query is the run: without it, a sample of an earlier trial could be the answer.
RUN = "$run"
LONGEST_QUERY = 2000
# Maximum seconds that a query, and the wait before it, may take.
LONGEST_TIMEOUT = 60.0
LONGEST_DELAY = 300.0
# What a component says about injected delays and contention: one line.
INJECTED = r"\S(?:.{0,198}\S)?"
INJECTED_ALLOWED = "a noun phrase of at most 200 characters on one line, such as 'contention of the file server'"
ADDRESS = r"https?://[^\s/@?#]+(/[^\s@?#]*)?"
TYPES = ("float", "int", "ordinal", "categorical", "boolean")
AGGREGATES = ("median", "min", "max", "mean")
TAKES = ("last", "first", "min", "max", "mean", "sum")
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
    *("artifacts", "exit_codes"),
)
DELIVERY_KEYS = ("env", "flag", "scheduler", "directive")
PARAMETER_KEYS = (
    *("type", "description", "unit", "default", "condition", "omit_default", "group", "injected"),
    *DELIVERY_KEYS,
)
# The service refuses a finer grid: floats could not distinguish its values.
FINEST_STEP = 1e-12
RANGE_KEYS = ("min", "max", "log", "step", "factor")
# What must be installed: names by kind, each with the package that brings it.
NEED_KEYS = ("programs", "modules", "files")
GENERATOR_KEYS = ("command", "timeout", "depends")
CONDITION_KEYS = ("parent", "values")
INJECTED_KEYS = ("text", "values")
VARIABLE_KEYS = ("name", "value", "on", "off")
SWITCH_KEYS = ("on", "off")
BUILD_KEYS = ("sources", "commands", "depends", "env", "timeout")
TEMPLATE_KEYS = ("source", "target")
SCHEDULER_KEYS = ("options", "directives")
APPLICATION_KEYS = (
    *("description", "command", "script", "env", "files", "cwd", "timeout", "repeats", "aggregate", "injected"),
)
STREAM_KEYS = ("from", "pattern")
EXIT_KEYS = ("failed",)
METRIC_KEYS = {
    "wall_time": ("type",),
    "cpu_time": ("type", "process"),
    "peak_memory": ("type", "process"),
    "bytes_written": ("type", "process"),
    "regex": ("type", "pattern", "from", "take", "unit", "unaffected"),
    "json": ("type", "path", "from", "unit", "unaffected"),
    "python": ("type", "function", "timeout", "unit", "unaffected"),
    "prometheus": ("type", "query", "url", "delay", "timeout", "unaffected"),
}
# The metrics of what a run, or a server outside the trial, uses.
USES = ("cpu_time", "peak_memory", "bytes_written")
# The metrics that need no mapping, as in `seconds: wall_time`.
PLAIN = ("wall_time", *USES)
# A metric with the name of a benchmark tool as its key, as in `{hyperfine: mean}`.
TOOL_KEYS = ("from", "of", "unaffected")
# The keys or words that are allowed at a place, as suggestions for people who write a file. A star stands for any name.
WORDS: Mapping[str, Sequence[str]] = {
    "": FILE_KEYS,
    "parameters.*": (*PARAMETER_KEYS, *RANGE_KEYS, "values", *SWITCH_KEYS),
    "parameters.*.type": TYPES,
    "parameters.*.condition": CONDITION_KEYS,
    "parameters.*.injected": INJECTED_KEYS,
    "parameters.*.log": ("true", "false"),
    "parameters.*.omit_default": ("true", "false"),
    "needs": NEED_KEYS,
    "parameters_from": GENERATOR_KEYS,
    "build": BUILD_KEYS,
    "templates": TEMPLATE_KEYS,
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
# the group of a pattern that gives the step of a measurement
STEP = "step"


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
        self._pattern_characters = 0

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
        metrics = self._metrics() if live is None else {name: Metric(name, "live") for name in live.readings}
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
            stream=self._stream(),
            artifacts=self._artifacts(),
            live=live,
            needs=read_needs(top),
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
            table.allow((*PARAMETER_KEYS, *SWITCH_KEYS))
        domain = self._domain(kind, table)
        default = table.scalar("default")
        condition = None
        if inner := table.table("condition"):
            inner.allow(CONDITION_KEYS)
            inner.require("parent", "values")
            condition = Condition(inner.text("parent"), inner.scalars("values"))
            if "values" in inner and not condition.values:
                inner.fault("values", "must name at least one value of the parent")
        env = self._env_delivery(name, domain, table)
        forms = {key: self._form(key, domain, table) for key in ("flag", "scheduler", "directive")}
        group = table.text("group", pattern=NAME, allowed=NAME_ALLOWED)
        unit = self._unit(table)
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

    def _unit(self, table: Table) -> str:
        return table.text("unit", pattern=r"\S(?:.{0,30}\S)?", allowed="a unit of 1 to 32 characters, such as MiB")

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

    def _domain(self, kind: str, table: Table) -> Domain:
        if kind == "boolean":
            return Switch()
        if kind in ("ordinal", "categorical"):
            table.require("values")
            values = table.scalars("values")
            if "values" in table and len(values) < 2:
                table.fault("values", "must have at least two values")
            if len({(isinstance(value, bool), value) for value in values}) < len(values):
                table.fault("values", "a value appears twice")
            for value in values:
                if isinstance(value, str) and len(value) > LONGEST_CHOICE:
                    table.fault("values", f"{value[:20]!r}... is longer than {LONGEST_CHOICE} characters")
                elif not isinstance(value, str | bool):
                    self._check_size("int" if isinstance(value, int) else "float", value, "values", table)
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
            table.fault("factor", "step (additive grid) and factor (multiplicative grid) are both given; give only one")
        if (log or factor is not None) and low <= 0:
            table.fault("min", f"{low!r} is not above 0, which log and factor require")
        if step is not None and step > high - low:
            table.fault("step", f"{step!r} is greater than max - min, {high - low!r}")
        finest = FINEST_STEP * max(abs(low), abs(high))
        if kind == "float" and step is not None and step < finest:
            table.fault("step", f"{step!r} is less than {finest!r}, which is {FINEST_STEP!r} times the larger bound")
        for key, bound in (("min", low), ("max", high), ("step", step)):
            if bound is not None:
                self._check_size(kind, bound, key, table)
        return Range(kind, low, high, log, step, factor)

    def _check_size(self, kind: Literal["float", "int"], value: float, key: str, table: Table) -> None:
        if abs(value) >= (2**63 if kind == "int" else 1e300):
            table.fault(key, f"{value!r} is too large for {'64 bits' if kind == 'int' else 'a float'}")

    def _env_delivery(self, name: str, domain: Domain, table: Table) -> tuple[str, Form] | None:
        if "env" not in table:
            return None
        if not table.is_table("env"):
            variable = table.text("env", pattern=VARIABLE, allowed=VARIABLE_ALLOWED)
            return variable, Form(("{value}",))
        inner = table.table("env")
        assert inner is not None
        inner.allow(VARIABLE_KEYS)
        inner.require("name")
        variable = inner.text("name", name, pattern=VARIABLE, allowed=VARIABLE_ALLOWED)
        if "on" not in inner and "off" not in inner:
            return variable, Form((inner.text("value", "{value}"),))
        if not isinstance(domain, Switch):
            message = "on and off are only for booleans; use `value` with a text that contains {value}"
            inner.fault("on" if "on" in inner else "off", message)
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
                    f"a boolean needs {key}: {{on: ..., off: ...}}, or a text with {{value}} (becomes true or false)",
                )
            elif not isinstance(domain, Switch) and not any("{value}" in item for item in items):
                table.fault(key, "must contain {value}, the place of the value")
            self._check_form_names(key, table, items)
            return Form(items)
        inner = table.table(key)
        assert inner is not None
        inner.allow(SWITCH_KEYS)
        if not isinstance(domain, Switch):
            table.fault(key, "on and off are only for booleans; use a text that contains {value}")
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
            if not re.fullmatch(VARIABLE, name):
                table.fault("env", f"{name!r} is not {VARIABLE_ALLOWED}")
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
                metric = self._metric(name, table)
                metrics[name] = replace(metric, unaffected=table.flag("unaffected", metric.kind in USES))
            elif (kind := outer.text(name)) in PLAIN:
                metrics[name] = Metric(name, cast(Any, kind), unaffected=kind in USES)
            else:
                kinds, fields = ", ".join(METRIC_KEYS), ", ".join(tools.FIELDS)
                message = f"must be {', '.join(USES)}, wall_time or a mapping: {{type: TYPE}} with one of {kinds}"
                outer.fault(name, f"{message}, or {{TOOL: FIELD}} with one of {fields}")
        if outer is not None and not metrics:
            self.top.fault("metrics", "must name at least one metric")
        return metrics

    def _stream(self) -> tuple[Stream, ...]:
        streams = []
        for table in self.top.list_of_tables("stream"):
            table.allow(STREAM_KEYS)
            source, pattern = self._source(table), table.text("pattern")
            rule = self._compiled(table, pattern)
            if rule is not None and not set(rule.groupindex) - {STEP}:
                table.fault(
                    "pattern", "must have a group (?P<METRIC>...) around a number; (?P<step>...) alone is not enough"
                )
            streams.append(Stream(source, pattern))
        return tuple(streams)

    def _compiled(self, table: Table, pattern: str) -> "re.Pattern[str] | None":
        """Return the pattern of a table, or None after a fault. Compiling takes up to 1 ms for each character."""
        if "pattern" not in table:
            return None
        self._pattern_characters += len(pattern)
        if len(pattern) > LONGEST_PATTERN:
            table.fault("pattern", f"has {len(pattern)} characters; at most {LONGEST_PATTERN} are allowed")
        elif self._pattern_characters > MOST_PATTERN_CHARACTERS:
            table.fault("pattern", f"exceeds the {MOST_PATTERN_CHARACTERS} characters of all patterns together")
        else:
            try:
                return re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                table.fault("pattern", f"is not a regular expression: {error}")
        return None

    def _source(self, table: Table) -> str:
        source = table.text("from", "stdout")
        if Path(source).is_absolute() or ".." in Path(source).parts:
            table.fault("from", f"{source!r} is not stdout, stderr or a path inside the trial's work folder")
        return source

    def _metric(self, name: str, table: Table) -> Metric:
        if "type" not in table and (tool := next((key for key in table if key in tools.FIELDS), None)):
            return self._tool_metric(name, tool, table)
        if "type" not in table:
            table.reader.report(
                table.node,
                table.field,
                f"must have a `type` ({', '.join(METRIC_KEYS)}) or the name of a tool ({', '.join(tools.FIELDS)})",
            )
        kind = table.choice("type", tuple(METRIC_KEYS), "wall_time") if "type" in table else "wall_time"
        if "type" in table:
            table.allow(METRIC_KEYS[kind])
        source, unit = self._source(table), self._unit(table)
        if kind == "regex":
            table.require("pattern")
            pattern = table.text("pattern")
            rule = self._compiled(table, pattern)
            if rule is not None and rule.groups < 1:
                table.fault("pattern", "must have a group in parentheses around the number")
            return Metric(name, "regex", source, pattern=pattern, take=table.choice("take", TAKES, "last"), unit=unit)
        if kind == "json":
            table.require("path")
            return Metric(name, "json", source, path=table.text("path"), unit=unit)
        if kind == "python":
            table.require("function")
            written = table.text("function", pattern=FUNCTION, allowed="FILE.py:FUNCTION")
            file_name, _, function = written.partition(":")
            file = self.find(table, "function", file_name) if function else None
            timeout = table.seconds("timeout", 60.0, above=0)
            return Metric(name, "python", file=file, function=function, timeout=timeout, unit=unit)
        if kind in USES:
            return Metric(
                name, cast(Any, kind), process=table.text("process", pattern=PROCESS, allowed=PROCESS_ALLOWED)
            )
        if kind == "prometheus":
            return self._prometheus_metric(name, table)
        return Metric(name, "wall_time")

    def _prometheus_metric(self, name: str, table: Table) -> Metric:
        table.require("query")
        query = table.text("query")
        if len(query) > LONGEST_QUERY:
            table.fault("query", f"has {len(query)} characters; at most {LONGEST_QUERY} are allowed")
        elif "query" in table and RUN not in query:
            table.fault("query", f"must contain {RUN}, the duration of the run, as in avg_over_time(latency[{RUN}])")
        allowed = "http://HOST:PORT or https://HOST:PORT, with an optional path and without a password"
        url = table.text("url", pattern=ADDRESS, allowed=allowed) if "url" in table else ""
        delay, timeout = table.seconds("delay", 0.0), table.seconds("timeout", 10.0, above=0)
        if not 0 <= delay <= LONGEST_DELAY:
            table.fault("delay", f"{delay:g} is not from 0 to {LONGEST_DELAY:g} seconds")
        if timeout > LONGEST_TIMEOUT:
            table.fault("timeout", f"{timeout:g} is above {LONGEST_TIMEOUT:g} seconds")
        return Metric(name, "prometheus", query=query, url=url, delay=delay, timeout=timeout)

    def _tool_metric(self, name: str, tool: str, table: Table) -> Metric:
        table.allow((tool, *TOOL_KEYS))
        field = table.choice(tool, tools.FIELDS[tool], tools.FIELDS[tool][0])
        of = table.text("of")
        if tool == "k6" and "of" in table:
            # With a filter, such as http_req_duration{expected_response:true}, it is the same duration.
            if field not in tools.K6_STATISTICS:
                table.fault("of", f"is not allowed with {field}, which is not a statistic of a duration")
            elif of.partition("{")[0] not in tools.K6_DURATIONS:
                table.fault("of", f"{of!r} is not one of {', '.join(tools.K6_DURATIONS)}")
        elif tool not in tools.SEVERAL and "of" in table:
            table.fault("of", f"is not allowed with {tool}, whose output is about one run")
        return Metric(name, "tool", self._source(table), tool=tool, output_field=field, of=of)


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
