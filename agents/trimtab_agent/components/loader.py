"""Load component files from YAML. All errors of all files are reported at once, before the agent starts."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from trimtab_agent.components import batch_script
from trimtab_agent.components.generated import Generator, GeneratorError
from trimtab_agent.errors import ComponentError
from trimtab_components import batch_places, placeholders
from trimtab_components.definition import Definition
from trimtab_components.errors import Problem
from trimtab_components.reader import Reader, Table
from trimtab_components.schema import Application, Component


def load_all(location: Path, generator: Generator) -> dict[str, Component]:
    """Load all components of `location`: a file, or a folder with `*.yaml` and `NAME/component.yaml`.

    Raises:
        ComponentError: with all errors of all files.
    """
    files = find_files(location)
    components: dict[str, Component] = {}
    problems: list[Problem] = []
    if not files:
        problems.append(
            Problem(
                str(location), 1, "components", "there is no component file: expected NAME/component.yaml or *.yaml"
            )
        )
    for file in files:
        try:
            component = load(file, generator)
        except ComponentError as error:
            problems += error.problems
            continue
        if component.name in components:
            message = f"{component.name!r} is also the name of {components[component.name].file}"
            problems.append(Problem(str(file), 1, "name", message))
        components[component.name] = component
    if problems:
        raise ComponentError(problems)
    return components


def find_files(location: Path) -> list[Path]:
    """Return the component files at `location`."""
    if location.is_file():
        return [location.absolute()]
    return sorted(path.absolute() for path in [*location.glob("*.yaml"), *location.glob("*/component.yaml")])


def load(file: Path, generator: Generator) -> Component:
    """Load one component file.

    Raises:
        ComponentError: with all errors of the file.
    """
    file = file.absolute()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ComponentError([Problem(str(file), 1, "file", f"cannot be read: {error}")]) from None
    reader = Reader(str(file))
    top = reader.parse(text)
    component = _InFolder(file, text, reader, top, generator).read() if top else None
    if reader.problems or component is None:
        raise ComponentError(reader.problems)
    return component


def _unreachable(component: Component, application: Application, path: Path, text: str) -> Iterator[Problem]:
    """Yield a problem for each value that the script of an application cannot notice."""
    fixed = batch_places.fixed(text)
    written = {**component.env, **application.env}
    for name, parameter in component.parameters.items():
        variables = [variable for variable, value in written.items() if name in placeholders.names_in_argument(value)]
        variables += [parameter.env[0]] if parameter.env else []
        for variable in variables:
            if variable in fixed:
                one = fixed[variable]
                message = (
                    f"the script sets {variable} to {one.value} itself, so the values of parameter {name!r} would have"
                    f" no effect. Write {one.remedy}, which keeps the value where nothing else is given"
                )
                yield Problem(str(path), one.line, variable, message)
    passed = [name for name, one in component.parameters.items() if one.flag and not one.group]
    if passed and not batch_places.reads_arguments(text):
        names = ", ".join(passed)
        message = f"the script reads no argument such as $1, so the values of {names} would have no effect"
        yield Problem(str(path), 1, "arguments", message)


class _InFolder(Definition):
    """A definition with the files and programs that it refers to."""

    def __init__(self, file: Path, text: str, reader: Reader, top: Table, generator: Generator) -> None:
        super().__init__(file, text, reader, top)
        self.generator = generator
        self.referred: set[Path] = set()
        # the batch scripts of a shell, with their texts, by application
        self.scripts: dict[str, tuple[Path, str]] = {}

    def read(self) -> Component:
        component = super().read()
        for name, (path, text) in self.scripts.items():
            for problem in _unreachable(component, component.applications[name], path, text):
                self.reader.problems.append(problem)
        return component

    def digest(self, generated: str) -> str:
        sha = hashlib.sha256(self.text.encode())
        sha.update(generated.encode())
        for path in sorted(self.referred):
            name = os.path.relpath(path, self.file.parent)
            sha.update(f"\0{name}\0{path.stat().st_size}\0".encode())
            sha.update(path.read_bytes())
        return sha.hexdigest()

    def generate(self, table: Table, command: Sequence[str], timeout: float, depends: Sequence[str]) -> str:
        try:
            return self.generator.run(self.file, command, timeout, depends)
        except GeneratorError as error:
            table.fault("command", str(error))
            return ""

    def find(self, table: Table, key: str, name: str) -> Path:
        path = self.file.parent / name
        if not path.is_file():
            table.fault(key, f"{name!r} is not a file in {self.file.parent}")
        else:
            self.referred.add(path)
        return path

    def find_all(self, table: Table, pattern: str) -> list[Path]:
        found = sorted(path for path in self.file.parent.glob(pattern) if path.is_file())
        if not found:
            table.fault("sources", f"{pattern!r} matches no file in {self.file.parent}; patterns are relative to it")
        self.referred.update(found)
        return found

    def template(self, table: Table, source: Path) -> str | None:
        return source.read_text(encoding="utf-8") if source.is_file() else None

    def script(self, table: Table, path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if not path.is_file():
            return (), ()
        try:
            script = batch_script.parse(path.read_bytes())
        except batch_script.BatchScriptError as error:
            self.reader.problems.append(Problem(str(path), error.line, table.path("script"), str(error)))
            return (), ()
        if batch_places.is_shell(script.interpreter):
            self.scripts[table.field.removeprefix("applications.")] = path, path.read_text(encoding="utf-8")
        command = tuple(item.replace("{", "{{").replace("}", "}}") for item in (*script.interpreter, str(path)))
        return command, script.directives
