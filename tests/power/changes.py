"""Small changes of Python source, each of which a test should find: the mutants of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# The objects whose calls write logs. Tests do not read every log line.
LOGS = {"log", "logger", "logging", "warnings"}
# The arguments that are texts for people.
TEXTS = {"help", "help_text", "description", "metavar", "verbose_name"}
# The functions whose first argument is a type or its name.
TYPES = {"cast", "TypeVar", "NewType"}

OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
BOUNDARIES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Change:
    """One change of a source file.

    `line` and `last` are the lines of the statement, without the statements within it. `names` are what the statement
    assigns, if it runs at import: other lines of the file that use these names show which tests depend on the change.
    """

    line: int
    last: int
    operator: str
    before: str
    after: str
    # In bytes of the source.
    start: int
    end: int
    at_import: bool
    names: tuple[str, ...] = ()
    # The lines of the function whose default argument changes, or (0, 0).
    body: tuple[int, int] = (0, 0)

    def apply(self, source: bytes) -> bytes:
        """Return the source with this change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def changes(source: bytes) -> list[Change]:
    """Return all changes of a source file, in the order of their places."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda one: (one.start, one.end, one.operator))


class _Finder(ast.NodeVisitor):
    """Walks through a file and collects its changes.

    A method is named after the node that it visits.
    """

    def __init__(self, source: bytes) -> None:
        self.found: list[Change] = []
        self._source = source
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._statement: ast.stmt = ast.Pass()
        self._functions = 0
        self._body = (0, 0)

    def visit(self, node: ast.AST) -> None:
        """Visit one node, and note the statement that it is in."""
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        before, self._statement = self._statement, node
        super().visit(node)
        self._statement = before

    # Statements

    def visit_Module(self, node: ast.Module) -> None:
        self._visit_body(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_body(node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._body = (node.body[0].lineno, node.end_lineno or node.lineno)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self._body = (0, 0)
        self._functions += 1
        self._visit_body(node.body)
        self._functions -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def _visit_body(self, body: list[ast.stmt]) -> None:
        """Visit statements without docstrings."""
        for statement in body:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in {"TYPE_CHECKING", "__name__ == '__main__'"}:
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._negate(node.test)
            self.generic_visit(node)
        else:
            self._visit_body(node.body)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            self._add(value, "return value replaced", "None")
            self.visit(value)

    def visit_Raise(self, node: ast.Raise) -> None:
        # The text of an error is for people.
        self._add(node, "raise removed", "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call) and not _is_log(value):
            self._add(node, "call removed", "pass")
            self.visit(value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        other = ARITHMETIC.get(type(node.op))
        if other is not None and not _is_text(node.value):
            changed = ast.AugAssign(node.target, other(), node.value)
            self._add(node, "arithmetic operator changed", ast.unparse(changed))
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._add(node, "break and continue swapped", "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "break and continue swapped", "break")

    def visit_Import(self, node: ast.Import) -> None:
        """Change nothing."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Change nothing."""

    # Expressions

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._negate(condition)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, "and and or swapped", ast.unparse(ast.BoolOp(other, node.values)))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, "not removed", ast.unparse(node.operand))
        elif isinstance(node.op, ast.USub):
            self._add(node, "sign changed", ast.unparse(node.operand))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for kind, table in (("comparison swapped", OPPOSITES), ("boundary moved", BOUNDARIES)):
                other = table.get(type(operator))
                if other is not None:
                    ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                    self._add(node, kind, ast.unparse(ast.Compare(node.left, ops, node.comparators)))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = ARITHMETIC.get(type(node.op))
        if other is not None and not _is_text(node.left) and not _is_text(node.right):
            self._add(node, "arithmetic operator changed", ast.unparse(ast.BinOp(node.left, other(), node.right)))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _is_log(node):
            return
        if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            self._add(node.func, "function replaced", FUNCTIONS[node.func.id])
        self.visit(node.func)
        # Types are for the type checker.
        for argument in node.args if ast.unparse(node.func) not in TYPES else node.args[1:]:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg not in TEXTS:
                self.visit(keyword.value)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.Constant):
                self._add(bound, "slice moved by one", f"({ast.unparse(bound)}) + 1")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        kind = "default argument changed" if self._body[0] else "constant changed"
        value = node.value
        if isinstance(value, bool):
            self._add(node, kind, str(not value))
        elif isinstance(value, int):
            self._add(node, kind, str(value + 1))
        elif isinstance(value, float):
            self._add(node, kind, repr(2 * value or 1.0))
        # A string with a space is a text for people.
        elif isinstance(value, str) and value and " " not in value and "\n" not in value:
            self._add(node, kind, repr(value + "_"))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Change nothing: most formatted strings are texts for people."""

    def visit_arg(self, node: ast.arg) -> None:
        """Change no annotation."""

    # Helpers

    def _negate(self, test: ast.expr) -> None:
        # The two have operators of their own.
        if not isinstance(test, ast.Compare) and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self._add(test, "condition negated", ast.unparse(ast.UnaryOp(ast.Not(), test)))

    def _add(self, node: ast.expr | ast.stmt, operator: str, after: str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        statement = self._statement
        before = self._source[start:end].decode()
        if isinstance(node, ast.expr) and not after.isidentifier() and not isinstance(node, ast.Constant):
            after = f"({after})"
        default = self._body[0] > 0
        self.found.append(
            Change(
                line=statement.lineno,
                last=_last(statement),
                operator=operator,
                before=before,
                after=after,
                start=start,
                end=end,
                at_import=not self._functions or default,
                names=() if self._functions or default else tuple(assigned(statement)),
                body=self._body,
            )
        )


def _last(statement: ast.stmt) -> int:
    """Return the last line of a statement, without the statements within it."""
    body: list[ast.stmt | ast.match_case] = getattr(statement, "body", None) or getattr(statement, "cases", [])
    if not body:
        return statement.end_lineno or statement.lineno
    first = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
    return max(statement.lineno, first - 1)


def assigned(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement assigns."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _is_log(call: ast.Call) -> bool:
    """Return whether a call writes a log line or a warning."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    target = function.value
    if isinstance(target, ast.Call):  # logging.getLogger(...)
        return _is_log(target)
    return isinstance(target, ast.Name) and target.id in LOGS


def _is_text(node: ast.expr) -> bool:
    """Return whether an expression is a text."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
