"""Tools of the scripts measure.py and tune.py: arguments, output, exit status, earlier studies."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import trimtab
from trimtab.errors import InvalidInput, NotFound
from trimtab.spec import StudyStatus
from trimtab.study import Study

# A file or a pipe has no width of its own.
screen = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
remarks = Console(stderr=True, highlight=False)


class ScriptError(Exception):
    """A part did not start, or a program failed."""


def exit_status(work: Callable[[], None], interrupted: str) -> int:
    """Do the work; return the exit status, 1 after an error. After Ctrl-C, print `interrupted` and return 130."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts background processes with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        work()
    except KeyboardInterrupt:
        remarks.print(interrupted)
        return 130
    except (trimtab.TrimtabError, ScriptError) as error:
        remarks.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1
    return 0


def parser_of(description: str | None, epilog: str) -> argparse.ArgumentParser:
    """Return a parser whose help keeps the lines of these texts."""
    kind = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=description, epilog=epilog, formatter_class=kind)


def check_numbers(options: argparse.Namespace, **least: int) -> None:
    """Raise InvalidInput for an option below its least value; a command may lack some of the options."""
    for name, smallest in least.items():
        if getattr(options, name, smallest) < smallest:
            raise InvalidInput.of(f"--{name}", getattr(options, name), f"{smallest} or more")


def check_interval(option: str, value: int, least: int) -> None:
    """Raise InvalidInput for a number that is neither 0 nor large enough for an interval."""
    if value != 0 and value < least:
        raise InvalidInput.of(option, value, f"0, or {least} or more, which an interval needs")


def check_names(option: str, text: str, known: Sequence[str], allowed: str) -> list[str]:
    """Return the names in a list with commas. Raise InvalidInput for an unknown name."""
    for name in (names := text.split(",")):
        if name not in known:
            raise InvalidInput.of(option, name, allowed)
    return names


def progress_bar() -> Progress:
    """Return a progress bar for a terminal. It prints nothing elsewhere."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=remarks, disable=not remarks.is_terminal)


def earlier_study(client: trimtab.Client, name: str, results: str) -> Study | None:
    """Return the study that an earlier run has created, and say that it is used; None if there is none.

    `results` says in words what is taken from a study that has ended.
    """
    try:
        study = client.get_study(name)
    except NotFound:
        return None
    goes_on = f"has ended: {results} (another --name measures again)" if study.state.finished else "goes on"
    remarks.print(f"Study {name} {goes_on}", soft_wrap=True)
    return study


def say_if_no_agent(client: trimtab.Client, waits: str) -> None:
    """Print that trials wait if no agent is online."""
    if not any(agent.online for agent in client.list_agents()):
        remarks.print(f"No agent is online: {waits}.")


class PauseNotices:
    """Messages that a study is paused, one for each time."""

    def __init__(self) -> None:
        self._paused: set[str] = set()

    def update(self, study: Study, status: StudyStatus) -> None:
        """Print a message if the study has been paused since the last call."""
        if status.state is not trimtab.StudyState.PAUSED:
            self._paused.discard(study.name)
        elif study.name not in self._paused:
            self._paused.add(study.name)
            why = f"Study {study.name} is paused: {status.reason or 'by its user'}."
            remarks.print(f"{why} To go on: trimtab study resume {study.name}", markup=False, soft_wrap=True)
