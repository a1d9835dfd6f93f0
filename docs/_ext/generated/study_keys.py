"""The keys of study files, from the module that reads them."""

import json

from docs._ext.generated.django_setup import set_up
from docs._ext.generated.markdown import code
from docs._ext.generated.markdown import table as markdown_table

FORMS = {
    "text": "text",
    "texts": "list of texts",
    "integer": "integer",
    "number": "number",
    "boolean": "`true` or `false`",
    "time": "time: seconds, or a number with `s`, `m`, `min`, `h` or `d`",
    "mapping": "mapping",
    "parameters": "mapping by parameter",
    "context": "mapping by context variable",
    "objectives": "list of objectives",
    "policy": "name, or name and options",
    "policies": "list of policies",
    "check": "`true`, `false` or mapping",
    "approval": "text or mapping",
    "stages": "list of numbers",
}


def table() -> str:
    """Return the table of all keys."""
    set_up()
    from service.planning.study_file import KEYS

    rows = [
        (code(key.path), FORMS[key.kind], "" if key.default is None else code(json.dumps(key.default)), key.doc)
        for key in KEYS
    ]
    return markdown_table(("key", "value", "default", "meaning"), rows)
