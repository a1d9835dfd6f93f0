"""`trimtab-service backup` and `trimtab-service restore`: the data of embedded mode in one file."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from trimtab_components.terminal import write

DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Data folder of the service [default: ~/.local/share/trimtab, or below XDG_DATA_HOME].",
        show_default=False,
        file_okay=False,
    ),
]


def data_folder(given: Path | None) -> Path:
    """Return the data folder that `--data-dir` names, or the default."""
    if given is not None:
        return given
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "trimtab"


def backup(
    file: Annotated[Path, typer.Argument(help="File to write. It must not exist.", show_default=False)],
    data_dir: DataDir = None,
) -> None:
    """Write the data of a service that `up` runs into one file. The service continues to run.

    The file contains the database, the administrator's token and the key that signs sign-ins, so keep it as secret as
    these. Nothing that the service acknowledged before is missing. docs/how-to/backup.md describes hosted mode too.

    Examples:

      trimtab-service backup trimtab.backup

      trimtab-service backup --data-dir ./data /backups/trimtab-$(date +%F).backup
    """
    from service.embedded.archive import BackupError
    from service.embedded.backup import back_up

    folder, target = data_folder(data_dir).expanduser().resolve(), file.expanduser().absolute()
    _end_on_sigterm()
    write(f"Backing up the data in {folder} ...", error=True)
    try:
        manifest = back_up(folder, target)
    except BackupError as error:
        _end(str(error))
    write(f"Wrote {target}: {target.stat().st_size} bytes, state of {manifest.taken_at} or later.")


def restore(
    file: Annotated[Path, typer.Argument(help="File that `backup` has written.", show_default=False)],
    data_dir: DataDir = None,
) -> None:
    """Make a data folder from a backup. The folder must not exist or be empty.

    The checksums and the version of the backup are checked first. A restore that is interrupted leaves the folder as it
    was. Then start the service with `up` and the same --data-dir.

    Examples:

      trimtab-service restore trimtab.backup

      trimtab-service restore --data-dir ./restored /backups/trimtab-2030-01-31.backup
    """
    from service.embedded.archive import BackupError
    from service.embedded.restore import restore as make_folder

    folder = data_folder(data_dir).expanduser().resolve()
    _end_on_sigterm()
    write(f"Restoring {file} into {folder} ...", error=True)
    try:
        manifest = make_folder(file.expanduser(), folder)
    except BackupError as error:
        _end(str(error))
    write(f"Restored the state of {manifest.taken_at}. Start it: trimtab-service up --data-dir {folder}")


def _end_on_sigterm() -> None:
    """End by an exception, so that unfinished files are removed."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _end(message: str) -> NoReturn:
    write(f"trimtab-service: {message}", error=True)
    raise typer.Exit(1)
