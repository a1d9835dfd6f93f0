"""Settings of a study in the form in which its program takes them, on standard output or in a file."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.cli.output import echo, say
from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.best import Rendered
    from trimtab.study import Study


class Format(StrEnum):
    """The form of settings."""

    ENV = "env"
    SET = "set"
    YAML = "yaml"
    JSON = "json"
    TEMPLATE = "template"
    COMMAND = "command"


Form = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="Print only the settings: variables (env), options of trimtab-agent try (set), YAML, JSON, the file that"
        " the component renders (template), or the command.",
    ),
]
OfTrial = Annotated[
    int | None, typer.Option("--trial", min=1, help="The values of this trial, for example of the Pareto set.")
]
To = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write to a file; several templates are written to a folder.")
]


def show(
    study: "Study", form: Format, *, trial: int | None, context: dict[str, object] | None, to: Path | None
) -> None:
    """Print the settings of a study in a form, or write them to a file. Notes go to standard error."""
    found = study.best.render(form, trial=trial, context=context)
    if to is None:
        _print(found)
    else:
        _write(found, to)
    for note in found.notes:
        say(note)


def _write(found: "Rendered", to: Path) -> None:
    try:
        if len(found.files) > 1 or (found.files and to.is_dir()):
            to.mkdir(parents=True, exist_ok=True)
            written = found.write(to)
        else:
            to.write_text(found.text, encoding="utf-8")
            written = [to]
    except OSError as error:
        raise InvalidInput("unwritable_file", f"{to} cannot be written: {error.strerror}.") from error
    say(f"Written: {', '.join(map(str, written))}")


def _print(found: "Rendered") -> None:
    if len(found.files) < 2:
        echo(found.text, nl=False)
        return
    for name, text in found.files.items():
        echo(f"# {name}")
        echo(text, nl=False)
