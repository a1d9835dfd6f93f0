"""The content of a valid component file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trimtab_components.errors import UnsuitableValueError
from trimtab_components.live import Live

Scalar = float | int | str | bool
Configuration = Mapping[str, Scalar]
# Names of components, parameters, applications and metrics.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
NAME_ALLOWED = "a name: letters, digits, '.', '_' and '-', at most 63, the first a letter or digit"


@dataclass(frozen=True)
class Range:
    """Numbers from `min` to `max`, both included. Values need not lie on the grid (`step` or `factor`), because a study
    may use another grid. The default lies on it."""

    kind: Literal["float", "int"]
    min: float
    max: float
    log: bool = False
    step: float | None = None
    factor: float | None = None

    def cast(self, value: object) -> Scalar:
        """Return the value as a number of this kind.

        Raises:
            UnsuitableValueError: the value is not a finite number of this kind, or is out of range.
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UnsuitableValueError(f"{value!r} is not {self.allowed()}")
        if self.kind == "int" and value != int(value):
            raise UnsuitableValueError(f"{value!r} is not {self.allowed()}")
        if not self.min <= value <= self.max:
            raise UnsuitableValueError(f"{value!r} is not {self.allowed()}")
        return int(value) if self.kind == "int" else float(value)

    @property
    def is_continuum(self) -> bool:
        """True if the range is continuous, without a grid."""
        return self.kind == "float" and self.step is None and self.factor is None

    def has_on_grid(self, value: float) -> bool:
        """Return whether a value in the range is on its grid, within rounding."""
        if self.step is not None:
            steps = round((value - self.min) / self.step)
            return abs(self.min + steps * self.step - value) <= 1e-6 * self.step
        if self.factor is None:
            return True
        ratio = math.log(self.factor)
        last = math.floor((math.log(self.max) - math.log(self.min)) / ratio + 1e-9)
        nearest = round((math.log(value) - math.log(self.min)) / ratio)
        try:
            points = [self.min * self.factor**power for power in range(nearest - 1, min(nearest + 1, last) + 1)]
        except OverflowError:
            return False
        if self.kind == "int":
            return any(round(point) == value for point in points)
        return any(abs(point - value) <= 1e-9 * value for point in points)

    def allowed(self) -> str:
        """Return the allowed values as text."""
        noun = "an integer" if self.kind == "int" else "a number"
        return f"{noun} from {self.min!r} to {self.max!r}"


@dataclass(frozen=True)
class Choices:
    """One of `values`. `ordered` says whether their order has a meaning."""

    ordered: bool
    values: tuple[Scalar, ...]

    def cast(self, value: object) -> Scalar:
        """Return the value as the file has it (1.0 matches 1; True does not).

        Raises:
            UnsuitableValueError: the value is not in the list.
        """
        for known in self.values:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return known
        raise UnsuitableValueError(f"{value!r} is not {self.allowed()}")

    def allowed(self) -> str:
        """Return the allowed values as text."""
        return "one of " + ", ".join(repr(value) for value in self.values)


@dataclass(frozen=True)
class Switch:
    """True or False."""

    def cast(self, value: object) -> Scalar:
        """Return the boolean.

        Raises:
            UnsuitableValueError: the value is not a boolean.
        """
        if not isinstance(value, bool):
            raise UnsuitableValueError(f"{value!r} is not {self.allowed()}")
        return value

    def allowed(self) -> str:
        """Return the allowed values as text."""
        return "true or false"


Domain = Range | Choices | Switch


@dataclass(frozen=True)
class Condition:
    """A condition: the parameter is active only if `parent` is active and has one of `values`."""

    parent: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Form:
    """How a value is written: items with `{name}` and `{value}`; for a switch, a list for on and for off."""

    items: tuple[str, ...] = ()
    on: tuple[str, ...] | None = None
    off: tuple[str, ...] | None = None

    def render(self, name: str, value: Scalar, text: str) -> tuple[str, ...]:
        """Return the items for a value, which is written as `text`; none if a switch has no items for it."""
        items = self.items
        if self.on is not None or self.off is not None:
            items = (self.on if value else self.off) or ()
        return tuple(item.replace("{name}", name).replace("{value}", text) for item in items)


@dataclass(frozen=True)
class Injected:
    """A part of the measurement that the tuned system does not have by itself, such as an artificial delay.

    It is in the runs of `application`, or of all applications if that is empty. With a `parameter` it is only in the
    runs in which this parameter has one of `values`. `text` is a noun phrase: "contention of the file server".
    """

    text: str
    application: str = ""
    parameter: str = ""
    values: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A parameter and all the ways in which its value reaches the system. `unit` is text for people. `on` and `off` are
    the texts of a boolean's values."""

    name: str
    domain: Domain
    default: Scalar
    description: str = ""
    unit: str = ""
    condition: Condition | None = None
    omit_default: bool = False
    env: tuple[str, Form] | None = None
    flag: Form | None = None
    group: str = ""
    scheduler: Form | None = None
    directive: Form | None = None
    on: str = "true"
    off: str = "false"

    def text(self, value: Scalar) -> str:
        """Return a value as the text that replaces its placeholder."""
        if isinstance(value, bool) and isinstance(self.domain, Switch):
            return self.on if value else self.off
        return as_text(value)

    def written(self, form: Form, value: Scalar) -> tuple[str, ...]:
        """Return the items of one of the forms for a value."""
        return form.render(self.name, value, self.text(value))


@dataclass(frozen=True)
class Template:
    """A file that is rendered for each trial."""

    source: Path
    target: str
    text: str


@dataclass(frozen=True)
class Build:
    """The build of a configuration. Its output is cached, and its time is not measured."""

    commands: tuple[tuple[str, ...], ...]
    sources: tuple[Path, ...] = ()
    depends: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 600.0


@dataclass(frozen=True)
class Application:
    """The program that measures a configuration. `timeout` is in seconds, for all runs of a trial together."""

    name: str
    command: tuple[str, ...]
    description: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    cwd: str = "{work}"
    is_script: bool = False
    # the scheduler lines at the head of a batch script, such as #SBATCH
    directives: tuple[str, ...] = ()
    timeout: float = 3600.0
    repeats: int = 1
    aggregate: Literal["median", "min", "max", "mean"] = "median"


@dataclass(frozen=True)
class Metric:
    """How a number is read from a run. `source` is stdout, stderr or a file in the trial's work folder."""

    name: str
    kind: Literal[
        "wall_time",
        "cpu_time",
        "peak_memory",
        "bytes_written",
        "regex",
        "json",
        "python",
        "tool",
        "prometheus",
        "live",
    ]
    source: str = "stdout"
    pattern: str = ""
    take: str = "last"
    path: str = ""
    file: Path | None = None
    function: str = ""
    timeout: float = 60.0
    # a benchmark tool, a field of its output, and one of several benchmarks in it; "": the only one
    tool: str = ""
    output_field: str = ""
    of: str = ""
    # a PromQL query over the run, the server's address ("": the agent's), and seconds to wait for the last samples
    query: str = ""
    url: str = ""
    delay: float = 0.0
    # the unit of the value; "": seconds, bytes, or the number as the output has it
    unit: str = ""
    # the name of a server's processes, for what a server uses; "": the processes of the trial
    process: str = ""
    # whether it hardly changes with the load of other processes, such as CPU time or a number of bytes
    unaffected: bool = False


@dataclass(frozen=True)
class Stream:
    """Lines with measurements during the run. `source` is as in `Metric`. The named groups of `pattern` are the
    metrics; an empty pattern means that each line is a JSON object."""

    source: str = "stdout"
    pattern: str = ""


@dataclass(frozen=True)
class Need:
    """A program, a module of Python, or a file that must be there, and what a person installs for it: a text such as
    "nginx-light", the name of a package."""

    kind: Literal["program", "module", "file"]
    name: str
    package: str


@dataclass(frozen=True)
class SettingsFile:
    """How a person writes recommended settings into the program's own file: a head, and a line for each parameter.

    No trial reads it. `line` has `{name}` and `{value}`.
    """

    target: str
    line: str
    head: str = ""


@dataclass(frozen=True)
class Component:
    """A component file. `digest` covers the file, generated parameters and every file that it refers to. `file_digest`
    covers only the file."""

    name: str
    file: Path
    digest: str
    description: str
    parameters: Mapping[str, Parameter]
    applications: Mapping[str, Application]
    metrics: Mapping[str, Metric]
    build: Build | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    preload: tuple[str, ...] = ()
    header: tuple[tuple[str, ...], ...] = ()
    templates: tuple[Template, ...] = ()
    scheduler_options: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    failed_exit_codes: tuple[int, ...] = ()
    injected: tuple[Injected, ...] = ()
    stream: tuple[Stream, ...] = ()
    # patterns of files in a trial's work folder that are stored with the trial
    artifacts: tuple[str, ...] = ()
    # for a system that serves while it is tuned; its instances are the applications
    live: Live | None = None
    file_digest: str = ""
    # what must be installed on the machine
    needs: tuple[Need, ...] = ()
    settings: SettingsFile | None = None

    @property
    def folder(self) -> Path:
        """The folder of the file and of the files that it refers to."""
        return self.file.parent


def as_text(value: Scalar) -> str:
    """Return a value as text for programs: shortest exact decimal, true and false in lower case."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
