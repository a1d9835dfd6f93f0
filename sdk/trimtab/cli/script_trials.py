"""Run one batch script as trials: each trial is a process of `trimtab-agent try`, which submits one job."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from trimtab.errors import Infeasible, InvalidInput
from trimtab.space import Scalar

# Seconds that `trimtab-agent try` has to end its job after SIGTERM.
GRACE = 30.0
# The exit code of trimtab-agent for wrong arguments, component files and a scheduler that is not installed.
WRONG_SETUP = 2


class JobFailed(Exception):
    """The job gave no result, for example because a node failed or somebody cancelled it."""


class ScriptTrials:
    """Runs trials of one component file as jobs. All methods may be called from several threads."""

    def __init__(self, component: Path, state: Path, options: Sequence[str], required: Sequence[str]) -> None:
        """`options` are of sbatch, for every job. A job without one of the metrics `required` is INFEASIBLE.

        Raises:
            InvalidInput: the program `trimtab-agent` is not installed.
        """
        self._command = [find_agent(), "try", str(component), "--runner", "slurm", "--state-dir", str(state)]
        self._command += [f"--slurm-option={option}" for option in options]
        self._required = [f"--metric={name}" for name in required]
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False
        # Whether a job has said something about its configuration.
        self._works = False

    def show(self, params: Mapping[str, Scalar] | None = None) -> str:
        """Return what a trial would run, with the defaults or other values. Nothing is submitted.

        Raises:
            InvalidInput: the agent refuses the component, or this machine has no Slurm.
        """
        command = [*self._command, "--dry-run", *_settings(params or {})]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise _wrong_setup(done.stderr)
        return done.stdout

    def sbatch(self, params: Mapping[str, Scalar], script: Path) -> str:
        """Return the command that submits the script with these values, as the trials got them.

        Raises:
            InvalidInput: the agent refuses the component, or this machine has no Slurm.
        """
        variables, options, arguments = [], [], []
        for line in self.show(params).splitlines():
            kind, _, text = line.partition(": ")
            if kind == "env":
                name, _, value = text.partition("=")
                variables.append(f"{name}={shlex.quote(value)}")
            elif kind == "scheduler" and not text.startswith("#"):
                options.append(shlex.quote(text))
            elif kind == "command":
                arguments = [shlex.quote(argument) for argument in ast.literal_eval(text)[2:]]
        return " ".join([*variables, "sbatch", *options, shlex.quote(str(script)), *arguments])

    def measure(self, params: Mapping[str, Scalar]) -> dict[str, float]:
        """Submit a job, wait for its end, and return its metrics.

        Raises:
            Infeasible: the configuration cannot work; the reason has the end of the output.
            JobFailed: the job gave no result.
            InvalidInput: no job has given a result yet, so that the script or the options are probably at fault; or
                Slurm has been removed.
        """
        with self._guard:
            if self._stopped:
                raise JobFailed("not submitted, because the command ends")
            # In a session of its own: Ctrl-C is for this process, which then decides.
            process = subprocess.Popen(
                [*self._command, "--json", *self._required, *_settings(params)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            output, errors = process.communicate()
        except BaseException:
            _end([process])
            raise
        finally:
            with self._guard:
                self._running.discard(process)
        if process.returncode == WRONG_SETUP:
            raise _wrong_setup(errors)
        try:
            result = json.loads(output)
        except ValueError:
            raise self._failed(f"trimtab-agent ended with exit code {process.returncode}: {_last(errors)}") from None
        if result["outcome"] == "completed":
            self._works = True
            return dict(result["metrics"])
        if result["outcome"] == "infeasible":
            self._works = True
            raise Infeasible(result["reason"])
        raise self._failed(result["reason"] or result["outcome"])

    def _failed(self, reason: str) -> Exception:
        return JobFailed(reason) if self._works or self._stopped else _wrong_setup(reason)

    def stop(self) -> None:
        """Cancel the jobs that are waiting or running, and start no more."""
        with self._guard:
            self._stopped = True
            running = list(self._running)
        _end(running)


def check(component: Path) -> None:
    """Check a component file, if the program `trimtab-agent` is installed.

    Raises:
        InvalidInput: the file or its script has an error.
    """
    try:
        agent = find_agent()
    except InvalidInput:
        # The agent that gets the file checks it.
        return
    done = subprocess.run([agent, "check", str(component)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _wrong_setup(done.stderr)


def _settings(params: Mapping[str, Scalar]) -> list[str]:
    return [f"--set={name}={_text(value)}" for name, value in params.items()]


def find_agent() -> str:
    """Return the path of `trimtab-agent`, next to this program or in PATH.

    Raises:
        InvalidInput: it is not installed.
    """
    own = Path(sys.executable).with_name("trimtab-agent")
    found = str(own) if os.access(own, os.X_OK) else shutil.which("trimtab-agent")
    if found is None:
        raise InvalidInput(
            "agent_not_installed",
            f"The program trimtab-agent, which submits the jobs, is neither in {own.parent} nor in PATH."
            " Install the package trimtab-agent next to trimtab.",
        )
    return found


def _end(processes: Sequence["subprocess.Popen[str]"]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()


def _wrong_setup(errors: str) -> InvalidInput:
    # The agent's count of errors would end in the middle of the sentence.
    errors = re.sub(r"^\d+ errors? in component files; nothing was started$", "", errors, flags=re.MULTILINE)
    return InvalidInput("script_not_runnable", f"The script cannot run as a trial: {errors.strip()}")


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _last(errors: str) -> str:
    return (errors.strip().splitlines() or ["no message"])[-1]
