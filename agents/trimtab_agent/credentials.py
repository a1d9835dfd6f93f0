"""Credentials of the agent: a token in a file, or its own credential from the enrolment.

    STATE/credential         the current one, and when to renew it; readable only by the agent's user
    STATE/credential.next    generated and perhaps sent, but not yet confirmed

The agent generates a credential itself and stores it before it sends the hash. If the answer or the agent's process is
lost, it asks again with the same credential and gets the same answer.
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
from trimtab_agent.files import write_atomically

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
# The agent checks at least this often, in seconds, because a sleeping machine's clock may not run on.
LONGEST_SLEEP = 60.0


class TokenFile:
    """A token in a file that the administrator maintains."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: set[str] = set()

    def secrets(self) -> set[str]:
        """Return all tokens that the file has contained since the start, as far as this process knows."""
        return set(self._seen)

    def token(self) -> str:
        """Return the token in the file. An administrator may replace it while the agent runs.

        Raises:
            ConfigError: the file cannot be read or is empty.
        """
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--token-file {self._path} cannot be read: {error}") from None
        if not token or any(ord(character) <= 32 or ord(character) > 126 for character in token):
            raise ConfigError(
                f"--token-file {self._path} must contain one token of printable characters without spaces"
            )
        self._seen.add(token)
        return token


@dataclass(frozen=True)
class _Kept:
    """A credential. Times are in seconds by this machine's clock. `enrolment` is the hash of its token."""

    secret: str
    enrolment: str
    issued_at: float = 0.0
    renew_after: float = 0.0


class Enrolled:
    """The agent's own credential in its state directory."""

    def __init__(self, state: Path) -> None:
        self._path = state / "credential"
        self._next_path = state / "credential.next"
        self._kept = _read(self._path)
        self._since = time.monotonic()

    def token(self) -> str:
        """Return the current credential.

        Raises:
            ConfigError: the agent has not enrolled.
        """
        if self._kept is None:
            raise ConfigError(
                "this agent has no credential: get a token with `trimtab agent enrol` and pass it with --enrol-file "
                "or in TRIMTAB_ENROL_TOKEN, or use --token-file"
            )
        return self._kept.secret

    def secrets(self) -> set[str]:
        """Return the current credential and its successor, as far as they exist."""
        drawn = _read(self._next_path)
        return {kept.secret for kept in (self._kept, drawn) if kept is not None}

    def exists(self) -> bool:
        """Return whether the agent has enrolled."""
        return self._kept is not None

    def came_with(self, enrolment: str) -> bool:
        """Return whether the current credential, or a predecessor, came from this enrolment token."""
        return self._kept is not None and self._kept.enrolment == digest(enrolment)

    def draw(self, enrolment: str | None = None) -> str:
        """Return the hash of a new credential, for an enrolment token or as the successor of the current one.

        Until it is confirmed, further calls return the same hash.

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
        """Make the new credential the current one, after the service has accepted it.

        Raises:
            JournalError: it cannot be written.
        """
        drawn = _read(self._next_path)
        assert drawn is not None, "no credential was generated"
        kept = _Kept(drawn.secret, drawn.enrolment, time.time(), renew_after)
        _write(self._path, kept)
        self._next_path.unlink()
        self._kept, self._since = kept, time.monotonic()

    def due(self) -> float:
        """Return the seconds until the next check whether a renewal is due; 0 if it is due.

        The wall clock may have been set, and the monotonic clock may have stopped while the machine slept. The earlier
        of the two decides.
        """
        if self._kept is None:
            return LONGEST_SLEEP
        by_date = self._kept.issued_at + self._kept.renew_after - time.time()
        set_back = time.time() < self._kept.issued_at
        by_clock = self._kept.renew_after - (time.monotonic() - self._since)
        return 0.0 if set_back else max(0.0, min(by_date, by_clock, LONGEST_SLEEP))


Credentials = TokenFile | Enrolled


def digest(text: str) -> str:
    """Return the hash of a secret. The service sees only this."""
    return hashlib.sha256(text.encode()).hexdigest()


def _draw() -> str:
    """Return `tra_`, 40 random characters and a checksum, the format that secret scanners recognize."""
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
