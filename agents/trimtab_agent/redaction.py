"""Hide secrets in what a trial has written, before it leaves the machine.

A trial may read what its user may read: the agent's credential if both have the same user, or keys in a home directory.
Everybody who may see the study reads its log. So tokens, private keys and the secrets that the agent itself knows are
replaced by asterisks. An encoded or split secret is not recognized; `run --trial-user` keeps the files themselves away.

A replacement has the length of the secret, so offsets in a log and sizes of files stay unchanged.
"""

import re
from collections.abc import Callable, Iterable

# The longest secret that is recognized when a text is read in pieces, in bytes.
LONGEST = 16 << 10
# The lines of a private key whose beginning is missing.
KEY_LINES = 200
# A shorter value may be an ordinary word.
_SHORTEST = 6
# Each of these takes linear time, whatever the text: none can begin within another match of itself.
_TOKENS = (
    re.compile(rb"(?<![0-9A-Za-z_])tr[mae]_[0-9A-Za-z]{8,}"),
    re.compile(rb"(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),
    re.compile(rb"(?<=[Bb]earer )\S+"),
    re.compile(rb"(?<=://)[^\s:/@]*:[^\s/@]+(?=@)"),
)
# The body ends at the dashes of the last line, or where something else begins. In JSON its lines end with \n.
_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----((?:[\sA-Za-z0-9+/=\\]|[A-Za-z-]{1,40}: [^\n]*\n)*)")
_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_KEY_LINE = re.compile(rb"[A-Za-z0-9+/=]{16,}\r?\n")
_INK = re.compile(rb"\S")


class Redactor:
    """Hides secrets. `known` returns the secrets that the agent knows now, such as its credential."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        self._known = known

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self.data(text.encode(errors="surrogateescape")).decode(errors="surrogateescape")

    def file(self, data: bytes) -> bytes:
        """Return the content of a file without secrets. In a file that is not text, only known ones are hidden."""
        return self._without_known(data) if b"\0" in data else self.data(data)

    def data(self, data: bytes) -> bytes:
        """Return a text without secrets, of the same length."""
        data = self._without_known(data)
        data = _KEY.sub(_hide_body, data)
        data = _without_key_ends(data)
        for pattern in _TOKENS:
            data = pattern.sub(_hide, data)
        return data

    def _without_known(self, data: bytes) -> bytes:
        # The longest first, because one may be the beginning of another.
        for secret in sorted({one.encode() for one in self._known() if len(one) >= _SHORTEST}, key=len, reverse=True):
            data = data.replace(secret, b"*" * len(secret))
        return data


def safe_end(data: bytes) -> int:
    """Return up to which byte a text that still grows can be redacted: no secret crosses it into what follows.

    This is the end of the last word, but at most LONGEST bytes are held back.
    """
    last = max(data.rfind(space) for space in (b" ", b"\n", b"\r", b"\t"))
    return max(last + 1, len(data) - LONGEST)


def _hide(match: re.Match[bytes]) -> bytes:
    return b"*" * len(match[0])


def _hide_body(match: re.Match[bytes]) -> bytes:
    body = match[1]
    return match[0][: len(match[0]) - len(body)] + _INK.sub(b"*", body)


def _without_key_ends(data: bytes) -> bytes:
    """Hide the lines before the end of a private key, whose beginning the log may have dropped."""
    hidden = bytearray(data)
    for end in _KEY_END.finditer(data):
        start = end.start()
        for _ in range(KEY_LINES):
            line = data.rfind(b"\n", 0, max(0, start - 1)) + 1
            if start == 0 or not _KEY_LINE.fullmatch(data, line, start):
                break
            start = line
        hidden[start : end.start()] = _INK.sub(b"*", data[start : end.start()])
    return bytes(hidden)
