"""A cluster whose submissions ask an agent's socket."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.factories.patience import PATIENCE, wait_for
from tests.factories.slurm import Slurm

SOURCES = Path(__file__).parents[4] / "deploy" / "slurm"
# A busy machine may take seconds for what usually takes a millisecond.
PATIENT = 30_000
# A job shows all that the plug-in may have changed of its environment.
SCRIPT = """#!/bin/sh
env | grep -E "^(SOLVER|LD_PRELOAD|SLURM_EXPORT|SLURM_GET)" >> "$1"
echo run >> "$1"
"""


class Cluster:
    """A cluster whose submissions ask a socket."""

    def __init__(self, slurm: Slurm, folder: Path) -> None:
        self.slurm, self.folder = slurm, folder
        self.socket = folder / "match.sock"
        self.library = folder / "installed" / "trimtab_match.so"
        self.script = folder / "job.sh"
        self.script.write_text(SCRIPT)
        self.script.chmod(0o755)
        self.install(PATIENT)

    def install(self, milliseconds: int) -> None:
        """Install the plug-in with this time for the agent."""
        options = [f"SOCKET={self.socket}", f"MILLISECONDS={milliseconds}"]
        argv = [str(SOURCES / "install.sh"), str(self.folder / "installed"), *options]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(self.folder / "installed" / "cli_filter.lua", self.slurm.folder)

    def run(self, *argv: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program of Slurm, which must succeed within a bounded time."""
        env = {**os.environ, "SLURM_CONF": str(self.slurm.configuration), **environment}
        done = subprocess.run(
            argv, env=env, cwd=self.folder, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr
        return done

    def sbatch(self, out: Path, *options: str, **environment: str) -> tuple[str, str]:
        """Submit the script; return the job's id and what sbatch said on standard error."""
        done = self.run("sbatch", "--parsable", "--output=/dev/null", *options, self.script, out, **environment)
        return done.stdout.strip(), done.stderr

    def comment(self, job: str) -> str:
        """Return the comment of a job."""
        found = re.search(r"Comment=(.*)", self.slurm.run("scontrol", "show", "job", job))
        return found[1].strip() if found else ""


def settings(out: Path, runs: int = 1) -> dict[str, str]:
    """Return the settings that the jobs had after this many runs."""
    wait_for(lambda: out.exists() and out.read_text().split().count("run") == runs)
    return dict(line.split("=", 1) for line in out.read_text().splitlines() if "=" in line)
