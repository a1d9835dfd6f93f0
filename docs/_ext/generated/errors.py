"""All error codes with their statuses, from the places in the service that raise them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from docs._ext.generated.django_setup import set_up
from docs._ext.generated.markdown import code
from docs._ext.generated.markdown import table as markdown_table
from docs._ext.pages import ROOT

# A comparison of algorithms is a program of its own, whose errors nobody gets from a service.
LEFT_OUT = ("_gen", "replay")
# Codes that are put together or passed on when they are raised, by the expression that the source has.
COMPOSED = {
    "f'too_many_{what}'": ("too_many_calls", "too_many_streams"),
    "f'unknown_{kind}'": ("unknown_application", "unknown_metric"),
}


@dataclass
class Code:
    """One code: the kinds of error that have it, and an example of the message."""

    kinds: set[str] = field(default_factory=set)
    message: str = ""


def table() -> str:
    """Return the table of all codes."""
    set_up()
    from service.api.errors import KINDS, STATUS_OF_CODE
    from service.core import errors as core
    from service.platform import error_pages
    from service.rpc.errors import STATUS_OF_KIND

    rows = []
    for name, found in sorted(codes().items()):
        kinds = [getattr(core, kind) for kind in sorted(found.kinds)]
        http = sorted({STATUS_OF_CODE.get(name, KINDS[kind][0]) for kind in kinds})
        grpc = sorted({STATUS_OF_KIND[kind].name for kind in kinds})
        page = error_pages.PAGES.get(name, "").replace(".html", ".md")
        link = f"[page](../{page})" if page else ""
        rows.append((code(name), ", ".join(map(str, http)), ", ".join(grpc), found.message, link))
    return markdown_table(("code", "HTTP", "gRPC", "for example", "more"), rows)


def codes() -> dict[str, Code]:
    """Return all codes that the service raises. Raises ValueError for a code that this program cannot find out."""
    paths = [path for path in sorted((ROOT / "service").rglob("*.py")) if not set(LEFT_OUT) & set(path.parts)]
    trees = {path: ast.parse(path.read_text()) for path in paths}
    kinds = _kinds(trees)
    found: dict[str, Code] = {}
    for path, tree in trees.items():
        variables = _variables(tree)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            kind = kinds.get(_name(call.func))
            if kind is None:
                continue
            expression, message = _arguments(call, kind)
            texts = tuple(_texts(expression, variables))
            if not texts:
                place = f"{path.relative_to(ROOT)}:{call.lineno}"
                raise ValueError(f"{place}: the code {ast.unparse(expression)} is composed. Add it to COMPOSED.")
            for text in texts:
                one = found.setdefault(text, Code())
                one.kinds.add(kind)
                one.message = one.message or message
    return found


def _kinds(trees: Mapping[Path, ast.Module]) -> dict[str, str]:
    """Return the kind of error of core/errors.py for the name of each class of errors."""
    from service.core import errors

    kinds = {
        name: name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.TrimtabError) and value is not errors.TrimtabError
    }
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in kinds:
                for base in node.bases:
                    if _name(base) in kinds:
                        kinds[node.name] = kinds[_name(base)]
    return kinds


def _arguments(call: ast.Call, kind: str) -> tuple[ast.expr, str]:
    """Return the expression of the code, and the message as far as it is written there."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if _name(call.func) == kind == "InvalidInput":
        return named.get("code", ast.Constant("invalid_argument")), _message(named.get("message"))
    return call.args[0], _message(call.args[1] if len(call.args) > 1 else named.get("message"))


def _texts(expression: ast.expr, variables: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    match expression:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from _texts(one, variables)
            yield from _texts(other, variables)
        case ast.Name(id=name):
            yield from variables.get(name, ())
        case _:
            yield from COMPOSED.get(ast.unparse(expression), ())


def _variables(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """Return the texts that each variable of a module is set to."""
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = (*found.get(target.id, ()), *_texts(node.value, {}))
    return found


def _message(expression: ast.expr | None) -> str:
    """Return the text with `…` in the place of values."""
    match expression:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        case _:
            return ""


def _name(expression: ast.expr) -> str:
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
