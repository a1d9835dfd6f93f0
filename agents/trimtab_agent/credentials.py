"""What the agent proves itself with: a token in a file, or a credential of its own that it got by enrolling.

    STATE/credential         the one in use, and when to renew it; readable by the agent's user alone
    STATE/credential.next    drawn and perhaps sent, but not yet confirmed

The agent draws a credential itself and writes it down before it sends the hash. So whatever is lost, an answer or the
agent's process, it asks again with the same one and gets the same answer.
"""

import hashlib
import json
import secrets
import string
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

from trimtab_agent.errors import ConfigError, JournalError
from trimtab_agent.supervisor.files import write_atomically

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
# A day's sleep of the machine is no reason to miss a renewal by more than this.
LONGEST_SLEEP = 60.0


class TokenFile:
    """A token that somebody else looks after."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def token(self) -> str:
        """The token as the file has it now: an administrator may replace it while the agent runs.

        Raises:
            ConfigError: the file cannot be read or is empty.
        """
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--token-file {self._path} cannot be read: {error}") from None
        if not token or any(ord(character) <= 32 or ord(character) > 126 for character in token):
            raise ConfigError(f"--token-file {self._path} must hold one token, printable and without spaces")
        return token


@dataclass(frozen=True)
class _Kept:
    """A credential. Times by this machine's clock; `enrolment` is the hash of the token that it came with."""

    secret: str
    enrolment: str
    issued_at: float = 0.0
    renew_after: float = 0.0


class Enrolled:
    """The agent's own credential, kept in its state directory."""

    def __init__(self, state: Path) -> None:
        self._path = state / "credential"
        self._next_path = state / "credential.next"
        self._kept = _read(self._path)
        self._since = time.monotonic()

    def token(self) -> str:
        """The credential in use.

        Raises:
            ConfigError: the agent has not enrolled.
        """
        if self._kept is None:
            raise ConfigError(
                "this agent has no credential yet: get a token by `trimtab agent enrol` and give it with --enrol TOKEN"
                ", or give --token-file"
            )
        return self._kept.secret

    def exists(self) -> bool:
        """Whether the agent has enrolled."""
        return self._kept is not None

    def came_with(self, enrolment: str) -> bool:
        """Whether the credential in use, or its forerunners, came with this enrolment token."""
        return self._kept is not None and self._kept.enrolment == digest(enrolment)

    def draw(self, enrolment: str | None = None) -> str:
        """The hash of a new credential, for an enrolment token or as the successor of the one in use: the same again
        until it is confirmed.

        Raises:
            JournalError: it cannot be written.
        """
        came_with = digest(enrolment) if enrolment is not None else self._kept.enrolment if self._kept else ""
        drawn = _read(self._next_path)
        if drawn is None or drawn.enrolment != came_with:
            drawn = _Kept(_draw(), came_with)
            _write(self._next_path, drawn)
        return digest(drawn.secret)

    def confirm(self, renew_after: float) -> None:
        """The service knows the credential that was drawn: it is the one in use from now on.

        Raises:
            JournalError: it cannot be written.
        """
        drawn = _read(self._next_path)
        assert drawn is not None, "nothing was drawn"
        kept = _Kept(drawn.secret, drawn.enrolment, time.time(), renew_after)
        _write(self._path, kept)
        self._next_path.unlink()
        self._kept, self._since = kept, time.monotonic()

    def due(self) -> float:
        """Seconds until the next look at whether a renewal is due; 0 when it is.

        The machine's clock may have been set, and may not have run on while the machine slept: what says "now" first
        counts.
        """
        if self._kept is None:
            return LONGEST_SLEEP
        by_date = self._kept.issued_at + self._kept.renew_after - time.time()
        set_back = time.time() < self._kept.issued_at
        by_clock = self._kept.renew_after - (time.monotonic() - self._since)
        return 0.0 if set_back else max(0.0, min(by_date, by_clock, LONGEST_SLEEP))


Credentials = TokenFile | Enrolled


def digest(text: str) -> str:
    """What the service gets to see of a secret."""
    return hashlib.sha256(text.encode()).hexdigest()


def _draw() -> str:
    """`tra_`, 40 random characters and a checksum: the form that the service and scanners for leaked secrets know."""
    body = "tra_" + "".join(secrets.choice(_ALPHABET) for _ in range(40))
    number, checksum = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, len(_ALPHABET))
        checksum = _ALPHABET[digit] + checksum
    return body + checksum


def _read(path: Path) -> _Kept | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return _Kept(
            str(content["secret"]),
            str(content["enrolment"]),
            float(content["issued_at"]),
            float(content["renew_after"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JournalError(f"{path} cannot be read ({error}): remove it and enrol the agent again") from None


def _write(path: Path, kept: _Kept) -> None:
    try:
        write_atomically(path, json.dumps(asdict(kept)).encode(), durable=True)
    except OSError as error:
        raise JournalError(f"{path} cannot be written: {error}") from None
