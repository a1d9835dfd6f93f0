"""The batch script of a trial, and the allowed options of sbatch."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from trimtab_agent.errors import NotAcceptedError
from trimtab_agent.runners.base import JobSpec
from trimtab_agent.runners.batch import BATCH_LOG, SUPERVISOR
from trimtab_components.errors import UnsuitableValueError

# Options that the runner itself sets, and options that would make the job something other than one trial.
OWN_OPTIONS = {
    "array": "a",
    "chdir": "D",
    "clusters": "M",
    "error": "e",
    "export": "",
    "export-file": "",
    "help": "h",
    "hold": "H",
    "input": "i",
    "job-name": "J",
    "output": "o",
    "parsable": "",
    "test-only": "",
    "usage": "",
    "version": "V",
    "wait": "W",
    "wrap": "",
}
OPTION = re.compile(r"--[A-Za-z][A-Za-z0-9-]*(=[^\n\r\0]*)?", re.DOTALL)
OPTION_ALLOWED = "an option of sbatch in its long form: --NAME or --NAME=VALUE"
OWN_ALLOWED = "any option of sbatch except " + ", ".join(f"--{name}" for name in OWN_OPTIONS)


def is_own(item: str) -> bool:
    """Return whether an argument is an option reserved for the runner, also in a shortened form."""
    if item.startswith("--"):
        given = item[2:].partition("=")[0]
        return bool(given) and any(name.startswith(given) for name in OWN_OPTIONS)
    return len(item) > 1 and item[0] == "-" and item[1] in "".join(OWN_OPTIONS.values())


def check(spec: JobSpec) -> None:
    """Check the options and directives of a job.

    Raises:
        NotAcceptedError: a trial's job cannot have a directive or an option.
        UnsuitableValueError: a value does not fit into one line.
    """
    for option in spec.scheduler_options:
        if is_own(option):
            raise NotAcceptedError(f"scheduler option {option!r} is reserved for the runner. Use {OWN_ALLOWED}.")
        if "\0" in option:
            raise UnsuitableValueError(f"scheduler option {option!r} contains a NUL character")
    for line in spec.directives:
        if not line.startswith("#"):
            raise NotAcceptedError(f"directive {line!r} does not start with '#'")
        if re.search(r"[\n\r\0]", line):
            raise UnsuitableValueError(f"directive {line!r} has more than one line")


def batch_script(spec: JobSpec, folder: Path, defaults: Sequence[str]) -> str:
    """Return the batch script of a trial.

    It contains, in this order: `--exclusive` if the study wants it; the administrator's options, which override that
    and which the trial's options override; the directives of the application and of the component; and the command that
    starts the supervisor, which runs everything else from the job's folder. No line that the shell executes contains
    text of the trial.
    """
    return _script(spec, defaults, [f"trial={shlex.quote(str(folder))}"], "$SLURM_JOB_ID")


def array_script(spec: JobSpec, folders: Sequence[Path], defaults: Sequence[str]) -> str:
    """Return the script of a job array, in which each task is a trial: the folders', in the order of their indexes.
    `spec` is the specification of one of them; all have the same options."""
    cases = [f"{index}) trial={shlex.quote(str(folder))};;" for index, folder in enumerate(folders)]
    choose = ['case "$SLURM_ARRAY_TASK_ID" in', *cases, "esac", 'cd "$trial"']
    return _script(spec, defaults, choose, "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID")


def _script(spec: JobSpec, defaults: Sequence[str], choose: Sequence[str], job: str) -> str:
    start = shlex.join(SUPERVISOR)
    return "\n".join(
        [
            "#!/bin/sh",
            *(["#SBATCH --exclusive"] if spec.exclusive else []),
            *(f"#SBATCH {_quoted(option)}" for option in defaults),
            *spec.directives,
            *choose,
            # Slurm's own redirection would read '%' in the path as a pattern
            f'exec >"$trial/{BATCH_LOG}" 2>&1',
            f'exec {start} "$trial" "{job}" "${{SLURM_RESTART_COUNT:-0}}" "$SLURM_JOB_NODELIST"',
            "",
        ]
    )


def job_name(folder: Path) -> str:
    """Return the job's name in Slurm, made from its lease."""
    return "trimtab-" + re.sub(r"[^A-Za-z0-9._-]", "_", folder.name.removeprefix("lease-"))


def _quoted(option: str) -> str:
    """Quote an option for sbatch, whose rules differ slightly from a shell's."""
    return "'" + option.replace("\\", "\\\\").replace("'", "\\'") + "'"
