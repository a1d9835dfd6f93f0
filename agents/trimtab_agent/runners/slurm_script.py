"""The batch script of a trial, and the options that sbatch may be given."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from trimtab_agent.errors import NotAcceptedError, UnsuitableValueError
from trimtab_agent.runners.base import JobSpec
from trimtab_agent.runners.batch import BATCH_LOG, SUPERVISOR

# what the runner itself sets, and what would make the job something else than one run of the trial
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
OWN_ALLOWED = "any option of sbatch but " + ", ".join(f"--{name}" for name in OWN_OPTIONS)


def is_own(item: str) -> bool:
    """Whether an item of a command line is an option that is the runner's alone, shortened ones included."""
    if item.startswith("--"):
        given = item[2:].partition("=")[0]
        return bool(given) and any(name.startswith(given) for name in OWN_OPTIONS)
    return len(item) > 1 and item[0] == "-" and item[1] in "".join(OWN_OPTIONS.values())


def check(spec: JobSpec) -> None:
    """Checks what is asked of Slurm for a job.

    Raises:
        NotAcceptedError: a directive or an option that a trial's job cannot have.
        UnsuitableValueError: a value that does not fit into a line.
    """
    for option in spec.scheduler_options:
        if is_own(option):
            raise NotAcceptedError(f"scheduler option {option!r} is the runner's own; allowed: {OWN_ALLOWED}")
        if "\0" in option:
            raise UnsuitableValueError(f"scheduler option {option!r} holds a NUL")
    for line in spec.directives:
        if not line.startswith("#"):
            raise NotAcceptedError(f"directive {line!r} does not start with '#'")
        if re.search(r"[\n\r\0]", line):
            raise UnsuitableValueError(f"directive {line!r} is more than one line")


def batch_script(spec: JobSpec, folder: Path, defaults: Sequence[str]) -> str:
    """The script: the study's wish for a node of its own; the administrator's options, which override that and are
    overridden by those of the trial; the directives of the application and of the component; and the supervisor, which
    runs everything else from the job's folder.

    Nothing of the trial stands in a line that the shell executes.
    """
    return _script(spec, defaults, [f"trial={shlex.quote(str(folder))}"], "$SLURM_JOB_ID")


def array_script(spec: JobSpec, folders: Sequence[Path], defaults: Sequence[str]) -> str:
    """The script of a job array, of which each task is a trial: the folders', in the order of their indexes. `spec` is
    that of one of them, and all ask the same of Slurm."""
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
            # Slurm's own redirection would take '%' in the path for a pattern
            f'exec >"$trial/{BATCH_LOG}" 2>&1',
            f'exec {start} "$trial" "{job}" "${{SLURM_RESTART_COUNT:-0}}" "$SLURM_JOB_NODELIST"',
            "",
        ]
    )


def job_name(folder: Path) -> str:
    """How the job is called in Slurm: by the lease, whose folder it is."""
    return "trimtab-" + re.sub(r"[^A-Za-z0-9._-]", "_", folder.name.removeprefix("lease-"))


def _quoted(option: str) -> str:
    """As sbatch reads options in a script: almost, but not quite, as a shell would."""
    return "'" + option.replace("\\", "\\\\").replace("'", "\\'") + "'"
