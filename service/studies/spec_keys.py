"""The form in which the keys of a study's spec are declared, and what follows from a declaration.

Each key is declared once, with its kind, limits, default and words. JSON is read and written by the declarations
(`read`, `write`). Messages (`rpc/converters.py`), the schema of the REST interface (`api/v1/serializers/problems.py`),
and the keys of study files with their reference and hints (`planning/study_file.py`) follow from them too.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from service.core.errors import InvalidInput, JsonValue

Kept = TypeVar("Kept")
is_empty: Callable[[object], bool] = operator.not_
_SAME = "="
_EMPTY: Sequence[object] = ("", [], {}, None)
_known: dict[type[Any], Sequence[Key]] = {}


def is_null(value: object) -> bool:
    """Return whether a value is null."""
    return value is None


@dataclass(frozen=True, slots=True)
class Record:
    """An object with declared keys. `name` is its name in the REST schema, and `words` describe it there."""

    name: str
    words: str
    keys: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value.

    `name` is the form of the value for study files and for the REST schema. `read` takes the path of the field and its
    JSON, and returns the checked value; it raises InvalidInput. `write` returns JSON. `is_left_out` says of an optional
    key's JSON whether the default applies. `record` has the keys of an object, or of each object in a list.
    """

    name: str
    read: Callable[[str, Any], Any] = lambda _field, value: value
    write: Callable[[Any], Any] = lambda value: value
    is_left_out: Callable[[object], bool] = is_null
    record: Record | None = None
    choices: Sequence[str] = ()

    @property
    def keys(self) -> Sequence[Key]:
        """The keys of the object or of each object."""
        return () if self.record is None else self.record.keys


@dataclass(frozen=True)
class Key:
    """The declaration of a key.

    `words` say for people what the key means, and `note` what is true of its JSON only. `required`: it has no default.
    `nullable`: its JSON may be null. `always_written`: its JSON is written even if it is empty.

    `short` is its name in the message and in a study file, where that is another one, and `file` its name in a file
    alone. An empty name means that the keys of the object stand there in its place, None that files do not have it.
    `file_form` says how a study file writes the value, and `file_default` is the value that a file need not repeat.
    """

    name: str
    kind: Kind
    words: str = ""
    note: str = ""
    required: bool = False
    nullable: bool = False
    always_written: bool = False
    short: str = _SAME
    file: str | None = _SAME
    file_form: str = ""
    file_default: JsonValue = None

    @property
    def in_message(self) -> str:
        """The name in the message; empty: the keys of the object stand there in its place."""
        return self.name if self.short == _SAME else self.short

    @property
    def in_file(self) -> str | None:
        """The name in a study file, None if files do not have it; empty: as in `in_message`."""
        return self.in_message if self.file == _SAME else self.file


def key(kind: Kind, words: str = "", *, default: Any = dataclasses.MISSING, **others: Any) -> Any:
    """Return a field of a dataclass that declares a key of the same name. The arguments are those of `Key`."""
    if default is dataclasses.MISSING and others.get("nullable"):
        default = None
    made = partial(Key, kind=kind, words=words, required=default is dataclasses.MISSING, **others)
    if callable(default):
        return dataclasses.field(default_factory=default, metadata={"declare": made})
    return dataclasses.field(default=default, metadata={"declare": made})


def own_keys(kept: type[Any]) -> Sequence[Key]:
    """Return the keys that the fields of a dataclass declare."""
    if kept not in _known:
        fields = dataclasses.fields(kept)
        _known[kept] = [one.metadata["declare"](one.name) for one in fields if "declare" in one.metadata]
    return _known[kept]


def record_of(kept: type[Any]) -> Record:
    """Return the record that a dataclass declares: the keys in its attribute `KEYS`, then those of its fields."""
    words = inspect.cleandoc(kept.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    return Record(kept.__name__, words, (*getattr(kept, "KEYS", ()), *own_keys(kept)))


def as_object(field: str, data: object, keys: Collection[str]) -> Mapping[str, Any]:
    """Return an object. Raises InvalidInput for anything else and for an unknown key; `field` is empty for the spec."""
    if not isinstance(data, Mapping):
        raise InvalidInput(field or "spec", data, "an object with " + ", ".join(sorted(keys)))
    for name in data:
        if name not in keys:
            where = f"{field}.{name}" if field else str(name)
            raise InvalidInput(where, data[name], "the keys " + ", ".join(sorted(keys)))
    return data


def read(kept: type[Kept], field: str, data: object, **others: Any) -> Kept:
    """Return the value that JSON describes, with `others` as values of the fields that declare no key.

    `field` is the path of the object, empty for a spec. Raises InvalidInput with the path of the field at fault.
    """
    given = as_object(field, data, [one.name for one in (*getattr(kept, "KEYS", ()), *own_keys(kept))])
    prefix = f"{field}." if field else ""
    for one in own_keys(kept):
        value = given.get(one.name)
        if one.required or (one.name in given and not one.kind.is_left_out(value)):
            others[one.name] = one.kind.read(prefix + one.name, value)
    return kept(**others)


def write(value: Any) -> dict[str, Any]:
    """Return the JSON from which `read` makes an equal value."""
    found: dict[str, Any] = {}
    for one in own_keys(type(value)):
        kept = getattr(value, one.name)
        data = None if kept is None else one.kind.write(kept)
        if one.always_written or one.nullable or one.required or data not in _EMPTY:
            found[one.name] = data
    return found


def record(kept: type[Any], is_left_out: Callable[[object], bool] = is_empty) -> Kind:
    """Return the kind of an object whose keys a dataclass declares."""
    return Kind("record", partial(read, kept), write, is_left_out, record_of(kept))
