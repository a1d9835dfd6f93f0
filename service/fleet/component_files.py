"""Component files that members of a tenant write in the service, and that administrators install on clusters.

The service never sends a file to a cluster. An agent runs a component only after its administrator has fetched the
file, read it and confirmed it (`trimtab-agent pull`). The package that the agent reads it with (`trimtab_components`)
checks the file here, and its parameters must form a valid space (core/space.py).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import IntegrityError

from service.core.errors import Conflict, InvalidInput, JsonValue, NotFound, ResourceExhausted, shorten
from service.core.space import Space
from service.fleet.models import ComponentFile
from service.studies import listen_notify
from service.tenancy import access, audit
from service.tenancy.principal import Principal
from trimtab_components.definition import WORDS, Definition
from trimtab_components.errors import Problem
from trimtab_components.reader import Reader, Table
from trimtab_components.schema import Choices, Component, Parameter, Range

LONGEST_TEXT = 64 * 1024
# The most files of a tenant: all versions of all components.
MOST_FILES = 1000
_MOST_PROBLEMS = 100
_FILE = Path("component.yaml")
_IN_SPACE = re.compile(r"space\[(\d+)\]\.?(.*)")


@dataclass(frozen=True, slots=True)
class Checked:
    """The content of a component file, as far as it can be known without a cluster.

    `name` is empty if the text has none. `unseen` holds the files and programs that the text refers to and that must
    exist on the cluster. `words` holds the words that are allowed at each place, with a star for any name.
    """

    name: str
    parameters: Sequence[str]
    applications: Sequence[str]
    metrics: Sequence[str]
    problems: Sequence[Problem]
    unseen: Sequence[str]
    words: Mapping[str, Sequence[str]]


def check(text: str) -> Checked:
    """Return all errors of a text, and its content. Raises InvalidInput for a text that is too long."""
    if len(text.encode(errors="replace")) > LONGEST_TEXT or "\0" in text:
        raise InvalidInput(
            "text", shorten(text, 100), f"a text of at most {LONGEST_TEXT} bytes, without NUL characters"
        )
    reader = Reader(_FILE.name)
    top = reader.parse(text)
    if top is None:
        return Checked("", (), (), (), reader.problems, (), WORDS)
    definition = Definition(_FILE, text, reader, top)
    component = definition.read()
    if not reader.problems:
        _check_space(definition, component)
    return Checked(
        component.name,
        list(component.parameters),
        list(component.applications),
        list(component.metrics),
        sorted(reader.problems, key=lambda problem: (problem.line, problem.column))[:_MOST_PROBLEMS],
        list(dict.fromkeys(definition.unseen)),
        WORDS,
    )


def write(principal: Principal, text: str, *, after: int) -> ComponentFile:
    """Store a new version of the component that the text names, and return it.

    If the newest version has the same text, it is returned and nothing is stored. `after` is the number of the version
    that the writer has seen, 0 for none. Raises InvalidInput (`invalid_component`, with all problems), Conflict
    (`component_changed`) if somebody else has written a version since, ResourceExhausted.
    """
    checked = check(text)
    if checked.problems:
        first = checked.problems[0]
        message = f"line {first.line}: {first.field}: {first.message}"
        fault = InvalidInput(
            first.field, f"line {first.line}", first.message, message=message, code="invalid_component"
        )
        fault.data["problems"] = [_problem_json(problem) for problem in checked.problems]
        raise fault
    digest = hashlib.sha256(text.encode()).hexdigest()
    try:
        with access.work(principal):
            newest = _newest(principal, checked.name)
            number = 0 if newest is None else newest.number
            if newest is not None and newest.sha256 == digest:
                return newest
            if after != number:
                raise _changed(checked.name, number)
            if access.rows(ComponentFile, principal).count() >= MOST_FILES:
                message = f"The tenant has {MOST_FILES} versions of components. Delete components that nobody uses."
                raise ResourceExhausted("too_many_components", message, limit=MOST_FILES)
            file = ComponentFile(name=checked.name, number=number + 1, text=text, sha256=digest, author=principal.actor)
            access.add(principal, file)
            after_it = {"number": file.number, "sha256": digest}
            audit.record(principal, "component.write", f"component/{file.name}", after=after_it)
            listen_notify.notify_lists(principal, "components")
    except IntegrityError:
        raise _changed(checked.name, number + 1) from None
    return get(principal, checked.name, number=number + 1)


def get(principal: Principal, name: str, *, number: int | None = None, digest: str = "") -> ComponentFile:
    """Return a version by its number or by the beginning of its digest, otherwise the newest one.

    Raises NotFound, InvalidInput.
    """
    if digest and not re.fullmatch(r"[0-9a-f]{8,64}", digest):
        raise InvalidInput("digest", digest, "8 to 64 hexadecimal digits")
    found = access.rows(ComponentFile, principal).filter(name=name, sha256__startswith=digest).order_by("-number")
    file = found.first() if number is None else found.filter(number=number).first()
    if file is None:
        which = f"with digest {digest}" if digest else "" if number is None else f"number {number}"
        raise NotFound("component_file_not_found", f"Nobody has written a component {name!r} {which}".rstrip() + ".")
    return file


def delete(principal: Principal, name: str) -> None:
    """Delete all versions of a component file. Files that are installed on clusters stay there. Raises NotFound."""
    with access.work(principal):
        newest = get(principal, name)
        access.rows(ComponentFile, principal).filter(name=name).delete()
        before = {"number": newest.number, "sha256": newest.sha256}
        audit.record(principal, "component.delete", f"component/{name}", before=before)
        listen_notify.notify_lists(principal, "components")


def _newest(principal: Principal, name: str) -> ComponentFile | None:
    return access.rows(ComponentFile, principal).filter(name=name).order_by("-number").first()


def _changed(name: str, number: int) -> Conflict:
    return Conflict(
        "component_changed",
        f"Component {name!r} has version {number} now. Read that version, and write yours after it.",
        number=number,
    )


def _problem_json(problem: Problem) -> dict[str, JsonValue]:
    return {"line": problem.line, "column": problem.column, "field": problem.field, "message": problem.message}


def _check_space(definition: Definition, component: Component) -> None:
    """Report problems for which the service would refuse a study.

    A space whose parameters a program prints cannot be checked here.
    """
    parameters = list(component.parameters.values())
    if not parameters or definition.unseen_parameters:
        return
    try:
        Space.from_json([_parameter_json(parameter) for parameter in parameters])
    except InvalidInput as error:
        place = _IN_SPACE.fullmatch(str(error.data["field"]))
        if place is None:
            definition.top.fault("parameters", error.message)
            return
        table: Table = definition.places[parameters[int(place[1])].name]
        key = re.split(r"[.\[]", place[2])[0]
        fault = error.message.removeprefix(f"{error.data['field']}: ")
        definition.reader.report(table.at(key), table.path(key), f"a study would be refused: {fault}")


def _parameter_json(parameter: Parameter) -> dict[str, JsonValue]:
    data: dict[str, JsonValue] = {"name": parameter.name, "default": parameter.default}
    if parameter.unit:
        data["unit"] = parameter.unit
    domain = parameter.domain
    if isinstance(domain, Range):
        data |= {"type": domain.kind, "min": domain.min, "max": domain.max, "log": domain.log}
        data |= {"step": domain.step, "factor": domain.factor}
    elif isinstance(domain, Choices):
        data |= {"type": "ordinal" if domain.ordered else "categorical", "values": list(domain.values)}
    else:
        data["type"] = "bool"
    if parameter.condition is not None:
        data["condition"] = {"parent": parameter.condition.parent, "values": list(parameter.condition.values)}
    return data
