"""The routes of the REST interface, from its OpenAPI schema."""

from collections import defaultdict

from docs._ext.generated.django_setup import set_up
from docs._ext.generated.markdown import code, table


def tables() -> str:
    """Return a table of methods, paths and summaries for each subject, which is the first part of the path."""
    set_up()
    from drf_spectacular.generators import SchemaGenerator

    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    subjects: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for path, operations in sorted(schema["paths"].items()):
        subject = path.removeprefix("/api/v1/").partition("/")[0]
        for method, operation in operations.items():
            summary = str(operation.get("description") or operation.get("summary") or "").partition("\n\n")[0]
            subjects[subject].append((code(method.upper()), code(path), summary))
    parts = [f"## {subject}\n\n{table(('method', 'path', 'what it does'), rows)}" for subject, rows in subjects.items()]
    return "\n".join(parts)
