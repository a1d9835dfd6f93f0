"""Follow a study until it ends."""

from typing import TYPE_CHECKING

import typer

from trimtab.cli.output import say
from trimtab.cli.results import print_best
from trimtab.errors import Timeout
from trimtab.spec import StudyState

if TYPE_CHECKING:
    from trimtab.study import Study


# The exit code of a command whose time is over, as that of timeout(1).
TIMED_OUT = 124


def follow(study: "Study", timeout: float | None = None, *, left: float | None = None) -> None:
    """Show the progress, then the result. Ctrl-C and the timeout (seconds) do not stop the study.

    `left`: the seconds of the timeout that are left; None: all.

    Raises:
        typer.Exit: with code 1 if the study is ABORTED or has no result, 124 after the timeout, 130 after Ctrl-C.
    """
    try:
        study.wait(timeout if left is None else left)
    except KeyboardInterrupt:
        raise interrupted(study) from None
    except Timeout:
        say(f"The study has not ended after {timeout:g} s.")
        _say_continues(study)
        raise typer.Exit(TIMED_OUT) from None
    status = study.status
    if status.reason:
        say(f"{status.state}: {status.reason}")
    if not print_best(study) or status.state is not StudyState.COMPLETED:
        raise typer.Exit(1)


def interrupted(study: "Study") -> typer.Exit:
    """Say after Ctrl-C that the study continues; return the end of the command."""
    _say_continues(study)
    return typer.Exit(130)


def _say_continues(study: "Study") -> None:
    say(
        f"The study continues. To follow it again: trimtab study watch {study.name}."
        f" To end it: trimtab study stop {study.name}."
    )
