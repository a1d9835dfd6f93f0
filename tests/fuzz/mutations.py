"""Mutations of a request that succeeds: one to three of its values are replaced, removed, repeated or exchanged.

A request is a tree of dictionaries, lists and plain values, for REST as for gRPC. Each mutation has a text that says
what it did, so that a person can read a finding.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.fuzz import values

Path: TypeAlias = tuple[Any, ...]
Structures: TypeAlias = Mapping[str, Mapping[str, Callable[[], Any]]]
# A value that stands for its removal.
_GONE = object()
# How often a mutation is a structure that its key stands for, if the request has such a key.
_STRUCTURES = 0.3


@dataclass(frozen=True)
class Kit:
    """The values that mutations may use.

    `most` is the largest number of bytes of a request, `foreign` are ids and names of another tenant, and `structures`
    replace a value by its key.
    """

    most: int
    foreign: Sequence[str] = ()
    structures: Structures = field(default_factory=lambda: values.STRUCTURES)


def mutate(random_: random.Random, tree: Any, kit: Kit) -> tuple[str, Any]:
    """Return a mutated copy of a tree, and what was done."""
    changed, done = copy.deepcopy(tree), []
    for _ in range(random_.choice((1, 1, 1, 2, 3))):
        found = [path for path in places(changed) if path != ("path",)] or [()]
        named = [path for path in found if path and path[-1] in kit.structures]
        if named and random_.random() < _STRUCTURES:
            at = random_.choice(named)
            known = kit.structures[at[-1]]
            text = random_.choice(sorted(known))
            value = known[text]()
        else:
            at = random_.choice(found)
            text, value = _replacement(random_, changed, at, kit)
        done.append(f"{'.'.join(map(str, at)) or 'all'}: {text}")
        changed = _put(changed, at, value)
    return "; ".join(done), changed


def places(tree: Any, path: Path = ()) -> list[Path]:
    """Return the paths of all values inside a tree: keys and indices. Of a long list, the first and the last count."""
    found: list[Path] = []
    inner: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        inner = list(tree.items())[:50]
    elif isinstance(tree, list):
        inner = [(number, tree[number]) for number in sorted({0, 1, len(tree) - 1}) if 0 <= number < len(tree)]
    for key, value in inner:
        found.append((*path, key))
        if len(path) < 20:
            found += places(value, (*path, key))
    return found


def value_at(tree: Any, path: Path) -> Any:
    """Return the value at a path."""
    for step in path:
        tree = tree[step]
    return tree


def _put(tree: Any, path: Path, value: Any) -> Any:
    """Return the tree with a value at a path, or without it."""
    if not path:
        return tree if value is _GONE else value
    *above, last = path
    place = value_at(tree, tuple(above))
    if value is _GONE:
        del place[last]
    else:
        place[last] = value
    return tree


def _replacement(random_: random.Random, tree: Any, path: Path, kit: Kit) -> tuple[str, Any]:
    old = value_at(tree, path)
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    made = [_wrong, _removed, _exchanged, _foreign]
    if isinstance(old, dict | list):
        made += [_grown, _grown, _nested, _repeated]
    elif isinstance(old, str):
        made += [_text, _text, _long, _long, _spoilt, _foreign]
    elif isinstance(old, int | float):
        made += [_number, _number, _number, _nudged]
    for _ in range(10):
        found = random_.choice(made)(random_, tree, old, name, kit)
        if found is not None:
            return found
    return _wrong(random_, tree, old, name, kit)


# Each returns what it did and the new value, or None where it cannot be done.


def _wrong(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    value = copy.deepcopy(random_.choice(values.WRONG_TYPES))
    return f"{value!r}", value


def _removed(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    return "removed", _GONE


def _number(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    value = random_.choice(values.NUMBERS)
    return f"{value!r}", value


def _nudged(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    value = random_.choice((old + 1, old - 1, -old, old * 10, float(old), random_.choice(values.sizes())))
    return f"{value!r}", value


def _text(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    value = random_.choice(values.TEXTS)
    return f"{value[:20]!r}", value


def _long(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    """Return a text of a size that the limits state, or as large as a request may be."""
    filler = random_.choice(values.FILLERS)
    size = random_.choice([*(size for size in values.sizes() if size <= kit.most), kit.most // 2])
    size = min(size, kit.most // (2 if filler.isascii() and filler.isprintable() else 6))
    value = (filler * (size // len(filler) + 1))[:size]
    return f"{size} characters of {filler!r}", value


def _spoilt(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    at, more = random_.randint(0, len(old)), random_.choice(values.TEXTS)
    return f"with {more[:20]!r} inside", old[:at] + more + old[at:]


def _exchanged(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any] | None:
    """Return another value of the request of the same type, so that names refer to themselves or are there twice."""
    others = [
        (path, other)
        for path in places(tree)
        if type(other := value_at(tree, path)) is type(old) and other is not old and other != old
    ]
    if not others:
        return None
    path, other = random_.choice(others)
    return f"the value of {'.'.join(map(str, path))}", copy.deepcopy(other)


def _foreign(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any] | None:
    """Return an id or a name of another tenant, of the form that the value has."""
    fitting = [one for one in kit.foreign if isinstance(old, str) or (isinstance(old, int) and one.isdigit())]
    if not fitting:
        return None
    value = random_.choice(fitting)
    return f"{value!r} of another tenant", value if isinstance(old, str) else int(value)


def _grown(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    """Return a list or an object with as many entries as a limit states, or as many as fit into a request."""
    entries = list(old.values() if isinstance(old, dict) else old)
    example = random_.choice(entries) if entries else random_.choice(("x", 1, {}, []))
    fits = min(values.MOST_ENTRIES, kit.most // (_size(example) + 14))
    count = random_.choice([*(size for size in values.sizes() if size <= min(fits, 10_001)), fits])
    if isinstance(old, dict):
        return f"{count} more keys", {**old, **{f"k{number}": copy.deepcopy(example) for number in range(count)}}
    same = random_.random() < 0.3
    return f"{count} entries{' of one name' if same else ''}", [
        _renamed(example, number, same) for number in range(count)
    ]


def _renamed(example: Any, number: int, same: bool) -> Any:
    """Return a copy of an entry of a list, under a name or number of its own unless it is to be the same."""
    if isinstance(example, dict):
        known = next((key for key in ("name", "trial", "submission", "metric", "key") if key in example), None)
        if same or known is None:
            return dict(example)
        old = example[known]
        other = number + 1 if isinstance(old, int) else f"{number:032x}" if known == "submission" else f"p{number}"
        return {**example, known: other}
    if same:
        return example
    return f"{example[:40]}{number}" if isinstance(example, str) else number if isinstance(example, int) else example


def _nested(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any]:
    levels = random_.choice((2, 20, 60, 64, 65, 200))
    value = copy.deepcopy(old)
    for _ in range(levels):
        value = [value] if isinstance(old, list) else {random_.choice(list(old) or ["a"]): value}
    return f"{levels} levels of itself", value


def _repeated(random_: random.Random, tree: Any, old: Any, name: str, kit: Kit) -> tuple[str, Any] | None:
    if isinstance(old, dict):
        if len(old) < 2:
            return None
        first, second = random_.sample(sorted(old, key=str), 2)
        return f"{first} and {second} exchanged", {**old, first: old[second], second: old[first]}
    return "everything twice", [*copy.deepcopy(old), *copy.deepcopy(old)]


def _size(value: Any) -> int:
    try:
        return len(json.dumps(value))
    except (TypeError, ValueError):
        return 100
