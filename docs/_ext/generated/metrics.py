"""The Prometheus metrics of the service, from the calls that make them."""

import ast
from collections.abc import Iterator

from docs._ext.generated.markdown import code
from docs._ext.generated.markdown import table as markdown_table
from docs._ext.pages import ROOT

KINDS = {"Histogram": "histogram", "Counter": "counter", "Gauge": "gauge", "GaugeMetricFamily": "gauge"}


def table() -> str:
    """Return the table of names, kinds, labels and help texts."""
    rows: list[tuple[str, str, str, str]] = []
    for path in (ROOT / "service").rglob("*.py"):
        if "_gen" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
                    rows += _metric(node, node.func.id)
    return markdown_table(("metric", "kind", "labels", "meaning"), sorted(rows))


def _metric(call: ast.Call, kind: str) -> Iterator[tuple[str, str, str, str]]:
    match call.args:
        case [ast.Constant(value=str(name)), ast.Constant(value=str(text)), *rest] if name.startswith("trimtab_"):
            named = [keyword.value for keyword in call.keywords if keyword.arg == "labels"]
            labels = next((one for one in [*named, *rest] if isinstance(one, ast.List)), ast.List([]))
            shown = f"{name}_total" if kind == "Counter" else name
            yield code(shown), KINDS[kind], ", ".join(code(ast.literal_eval(label)) for label in labels.elts), text
