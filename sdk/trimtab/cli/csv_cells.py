"""Cells of CSV files for people, who open them in a spreadsheet. Texts come from others: reasons, names of agents."""

import re
import unicodedata

# A spreadsheet takes a text that begins with one of these for a formula, also after spaces and in full width.
_FORMULA = ("=", "+", "-", "@")
_CONTROL = ("\t", "\r", "\n")
# Where a comma separates decimals, spreadsheets begin a new cell after these, whether or not the text is quoted.
_CELL_ENDS = re.compile(r"([;\t\r\n])")


def safe(value: object) -> object:
    """Return a value with an apostrophe in front of each part of a text that a spreadsheet would take for a formula."""
    if not isinstance(value, str):
        return value
    text = "".join(f"'{part}" if _is_formula(part) else part for part in _CELL_ENDS.split(value))
    return f"'{text}" if value.startswith(_CONTROL) else text


def _is_formula(part: str) -> bool:
    # only the beginning counts, and a text may be long
    return unicodedata.normalize("NFKC", part.lstrip()[:1]).startswith(_FORMULA)
