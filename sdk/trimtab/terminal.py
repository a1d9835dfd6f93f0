"""Text on a terminal: characters that control the terminal are shown as escapes, and passwords in addresses are hidden.

Names of jobs, studies, trials and agents come from other people. Without this, one of them could move the cursor,
rewrite lines that were printed before, or reverse the order of letters. The service and the agent share this file
(`trimtab_components`). The SDK, which shares only the protocol with them, has a copy (`trimtab`).
"""

from __future__ import annotations

import os
import re
import sys
from typing import NoReturn

HIDDEN = "***"
# Control characters of C0 and C1 (but no tab and no line break), halves of surrogate pairs, separators of lines, and
# the invisible characters that order, join or tag others (category Cf without the number signs, which are visible).
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
_BREAK = re.compile("[\t\n]")
# A password may have an unescaped @ or slash, so everything up to the last @ is hidden.
_PASSWORD = re.compile(r"(?<=://)([^\s:/@]*):[^\s'\"]*@")
_SETTING = re.compile(r"(?i)\b((?:ssl)?password|passwd|pwd)=('[^']*'|[^\s&'\"]+)")


def visible(text: str) -> str:
    """Return the text with each control character as the escape that Python would write, such as \\x1b."""
    return _CONTROL.sub(_escape, text)


def on_one_line(text: str) -> str:
    """Return the same without line breaks and tabs, so that a name cannot look like a line of its own."""
    return _BREAK.sub(_escape, visible(text))


def without_passwords(text: str) -> str:
    """Return the text without the passwords of addresses and of connection settings."""
    return _SETTING.sub(rf"\1={HIDDEN}", _PASSWORD.sub(rf"\1:{HIDDEN}@", text))


def write(text: object = "", *, error: bool = False, end: str = "\n") -> None:
    """Print a text on standard output, or on standard error. Errors also lose the passwords of addresses."""
    shown = visible(str(text))
    print(without_passwords(shown) if error else shown, end=end, file=sys.stderr if error else sys.stdout, flush=True)


def reader_gone() -> NoReturn:
    """End this process without a message, because the reader of its output, such as `head`, has gone."""
    # Otherwise Python tries to write the rest of its buffer at the end, and reports that it cannot.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    raise SystemExit(1)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
