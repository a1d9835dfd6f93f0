"""The configuration of Sphinx for the documentation site. `make docs` stages the sources that it reads."""

import re
import sys
from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

project = "Trimtab"
release = metadata.version("trimtab-service")
html_title = f"Trimtab {release}"
language = "en"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# A page of the site links to headings of other pages as a code host names them.
myst_heading_anchors = 5
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_favicon = "../web/public/favicon.svg"
html_show_copyright = html_show_sphinx = False
html_copy_source = False
html_permalinks_icon = "#"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["trimtab.css"]
# Docstrings put code between single backticks.
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"


def mark_code(_app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Mark the code of a docstring as code: what is indented below a line that ends with a colon."""
    for index in range(len(lines) - 2):
        line, blank, below = lines[index : index + 3]
        indent = re.match(" *", line)[0]  # type: ignore[index]  # it matches every text
        if line.endswith(":") and not blank.strip() and below.startswith(f"{indent}    "):
            lines[index] = f"{line}:"


def setup(app: Sphinx) -> None:
    """Connect what this site adds to Sphinx."""
    app.connect("autodoc-process-docstring", mark_code)
