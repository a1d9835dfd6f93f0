"""Follow a study until it ends."""

from typing import TYPE_CHECKING

import typer

from trimtab.cli.output import print_best, say
from trimtab.spec import StudyState

if TYPE_CHECKING:
    from trimtab.study import Study


def follow(study: "Study") -> None:
    """Show the progress, then the result. Ctrl-C stops following but does not stop the study.

    Raises:
        typer.Exit: with code 1 if the study is ABORTED, 130 after Ctrl-C.
    """
    try:
        study.wait()
    except KeyboardInterrupt:
        say(
            f"The study continues. To follow it again: trimtab study watch {study.name}."
            f" To end it: trimtab study stop {study.name}."
        )
        raise typer.Exit(130) from None
    status = study.status
    if status.reason:
        say(f"{status.state}: {status.reason}")
    print_best(study)
    if status.state is not StudyState.COMPLETED:
        raise typer.Exit(1)
