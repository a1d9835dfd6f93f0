"""A controller that gives a running system the settings that suit its present context."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trimtab._internal.logger import Logger
from trimtab.cli.follow_guards import Guards
from trimtab.cli.follow_lease import Lease
from trimtab.context import ContextRow, ContextTable
from trimtab.errors import InvalidInput, TrimtabError

logger = Logger("trimtab")

INTERVAL_SECONDS = 10.0
# A context has to last for this many readings before its settings are applied.
CONFIRMATIONS = 2
# A table is read again after this time.
REFRESH_SECONDS = 60.0
COMMAND_SECONDS = 60.0

ReadContext = Callable[[], Mapping[str, object]]
Apply = Callable[[ContextRow], None]
Revert = Callable[[], None]
# Seconds between two looks at the guards, and between two attempts to take settings back.
LOOK_SECONDS, RETRY_SECONDS = 0.2, 1.0


class FollowError(Exception):
    """A command of the user has failed. The controller says so and tries again at its next step."""


@dataclass
class Follower:
    """Settings that follow the context of a running system.

    Each `step` reads the context, finds its row and applies the settings if they differ from those that were applied
    last. Settings change only after `confirmations` readings in a row that ask for the same ones, so that a context
    that flickers does not make the system flicker. The table is fetched again after `refresh` seconds; while the
    service is away, the last one is used, also from `file`, where it outlives this process.
    """

    fetch: Callable[[], ContextTable]
    """Returns the present table; raises TrimtabError while the service is away."""
    read_context: ReadContext
    """Returns the value of each context variable. Its errors are reported, and the settings stay."""
    apply: Apply
    """Gives the settings of a row to the system. It is called again at the next step if it raises FollowError."""
    revert: Revert | None = None
    """Puts the settings back that the system had before; without it, those of the row before are applied again."""
    guards: Guards | None = None
    """A broken guard takes settings back. They are not applied again before the table has a new revision."""
    lease: Lease | None = None
    """Outlives this process, and takes the settings back if it dies."""
    file: Path | None = None
    confirmations: int = CONFIRMATIONS
    refresh: float = REFRESH_SECONDS
    clock: Callable[[], float] = time.monotonic
    applied: ContextRow | None = None
    _table: ContextTable | None = None
    _fetched: float | None = None
    _wanted: ContextRow | None = None
    _seen: int = 0
    _away: bool = field(default=False)
    # Settings that have broken a guard, and the revision of their table.
    _bad: list[tuple[int, Mapping[str, object]]] = field(default_factory=list)
    # Whether settings have to be taken back, which has failed so far; the row to go back to.
    _owed: bool = False
    _back_to: ContextRow | None = None

    def step(self) -> ContextRow | None:
        """Read the context once. Return the row whose settings were applied in this step; None if nothing changed.

        Settings that could not be applied are taken back.

        Raises:
            FollowError: the context could not be read, or the settings could not be applied or taken back.
            InvalidInput: the context has a value that the table does not have.
            TrimtabError: there is no table yet: the service is away, and no file has an earlier one.
        """
        if self._owed:
            self._take_back()
        row = self.table().lookup(self.read_context())
        self._seen = self._seen + 1 if self._wanted is not None and self._wanted.settings == row.settings else 1
        self._wanted = row
        if self.applied is not None and self.applied.settings == row.settings:
            return None
        # The first settings are applied at once: there are none that could flicker.
        if self.applied is not None and self._seen < self.confirmations:
            return None
        if (self.table().revision, row.settings) in self._bad:
            return None
        self._put(row)
        return row

    def watch(self) -> str:
        """Return the guard that is broken now, after its settings were taken back; "" if none is.

        Raises:
            FollowError: the settings could not be taken back. The next step tries again.
        """
        if self._owed:
            self._take_back()
        broken = self.guards.look() if self.guards is not None and self.applied is not None else ""
        if broken and self.applied is not None:
            self._bad.append((self.table().revision, self.applied.settings))
            self._owed = True
            try:
                self._take_back()
            except FollowError as error:
                raise FollowError(f"{broken}. {error}") from error
        return broken

    def end(self) -> bool:
        """Take the settings back if nobody guards them any more; return whether that was done.

        Raises:
            FollowError: they could not be taken back.
        """
        if self.guards is not None:
            self.guards.close()
        guarded = self.guards is not None or self.lease is not None
        if guarded and self.revert is not None and (self.applied is not None or self._owed):
            self._back_to = None
            self._take_back()
            return True
        return False

    def _put(self, row: ContextRow) -> None:
        """Apply the settings of a row; take them back if that fails."""
        before = self.applied
        if self.lease is not None:
            try:
                self.lease.hold()
            except OSError as error:
                raise FollowError(f"the lease file cannot be written, so nothing is applied: {error}") from error
        self._back_to, self._owed = before, True
        try:
            self.apply(row)
        except FollowError as error:
            text = str(error)
            try:
                self._take_back()
            except FollowError as again:
                text = f"{text}. {again}"
            raise FollowError(text) from error
        self._owed, self.applied = False, row
        if self.guards is not None:
            self.guards.reset()

    def _take_back(self) -> None:
        """Put the settings in force that were there before; without any, or a command for that, leave them."""
        before = self._back_to
        try:
            if self.revert is not None:
                self.revert()
                before = None
            elif before is not None:
                self.apply(before)
        except FollowError as error:
            self._owed = True
            raise FollowError(f"The earlier settings could not be put back: {error}") from error
        self._owed, self.applied = False, before
        if self.revert is not None and self.lease is not None:
            self.lease.give_up()
        if self.guards is not None:
            self.guards.reset()

    def run(self, interval: float = INTERVAL_SECONDS, *, report: Callable[[str], None] = logger.info) -> None:
        """Call `step` every `interval` seconds until the process ends, and report what happens."""
        while True:
            try:
                row = self.step()
                if row is not None:
                    report(f"Applied the settings of {_words(row.context)}: {_words(row.settings)}.")
            except (FollowError, InvalidInput, TrimtabError) as error:
                report(f"No new settings: {error}")
            until = time.monotonic() + interval
            while (seconds := until - time.monotonic()) > 0:
                if self.guards is None and not self._owed:
                    time.sleep(seconds)
                    break
                pause = RETRY_SECONDS if self._owed else LOOK_SECONDS
                try:
                    if broken := self.watch():
                        report(f"The earlier settings are in force again: {broken}.")
                except (FollowError, TrimtabError) as error:
                    report(str(error))
                time.sleep(min(pause, seconds))

    def table(self) -> ContextTable:
        """Return the table, fetched again if it is old and the service is there."""
        now = self.clock()
        if self._table is None or self._fetched is None or now - self._fetched >= self.refresh:
            try:
                fetched = self.fetch()
            except TrimtabError as error:
                if not error.retryable and self._table is None:
                    raise
                self._use_last(error)
            else:
                self._table, self._away = fetched, False
                if self.file is not None:
                    fetched.write(self.file)
            self._fetched = now
        assert self._table is not None
        return self._table

    def _use_last(self, error: TrimtabError) -> None:
        if self._table is None:
            if self.file is None or not self.file.exists():
                raise error
            self._table = ContextTable.read(self.file)
        if not self._away:
            logger.warning("the table stays in use", revision=self._table.revision, error=error)
        self._away = True


def context_of_command(command: str) -> ReadContext:
    """Return a function that runs a command, without a shell, and reads the context that it prints.

    The command prints a JSON object, or lines such as `load=high`.
    """
    words = _words_of("context_command", command)

    def read() -> Mapping[str, object]:
        text = _run(words, "")
        try:
            found = json.loads(text)
        except ValueError:
            pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
            if not pairs or any(not equals for _, equals, _ in pairs):
                raise FollowError(
                    f"the context command printed {text[:200]!r}. Print a JSON object, or lines such as load=high."
                ) from None
            return {name.strip(): _scalar(value.strip()) for name, _, value in pairs}
        if not isinstance(found, dict):
            raise FollowError(f"the context command printed {text[:200]!r}. Print a JSON object.")
        return found

    return read


def settings_to_command(command: str) -> Apply:
    """Return a function that runs a command, without a shell, with a row as JSON on its standard input.

    The object has `settings`, `context` and `is_default`.
    """
    words = _words_of("apply_command", command)

    def apply(row: ContextRow) -> None:
        content = {"settings": row.settings, "context": row.context, "is_default": row.is_default}
        _run(words, json.dumps(content))

    return apply


def revert_of_command(command: str) -> tuple[list[str], Revert]:
    """Return the words of a command, and a function that runs it without a shell and without input."""
    words = _words_of("revert_command", command)

    def revert() -> None:
        _run(words, "")

    return words, revert


def _words_of(field_name: str, command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidInput.of(field_name, command, f"a command with complete quotes ({error})") from error
    if not words:
        raise InvalidInput.of(field_name, command, "a command")
    return words


def _run(words: list[str], given: str) -> str:
    try:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False, errors="replace"
        )
    except OSError as error:
        raise FollowError(f"{words[0]} cannot be run: {error.strerror or error}") from error
    except subprocess.TimeoutExpired as error:
        raise FollowError(f"{words[0]} was still running after {COMMAND_SECONDS:g} s") from error
    if done.returncode != 0:
        raise FollowError(f"{words[0]} ended with code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _scalar(text: str) -> object:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, bool | int | float) else text


def _words(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
