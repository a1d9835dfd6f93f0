"""The command line as a user types it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.factories.patience import PATIENCE

STUDY = """
name: {name}
parameters:
  x: {{type: float, min: 1e-3, max: 10, log: true}}
  alg: {{type: categorical, values: [a, b]}}
constraints: ["x < 5"]
objectives: [{{minimize: seconds, unit: s}}]
algorithm: random
"""


COMMAND = [sys.executable, "-c", "from trimtab.cli.main import app; app(prog_name='trimtab')"]


class Shell:
    """Runs `trimtab` with a home of its own."""

    def __init__(self, home: Path, **environment: str) -> None:
        plain = {key: value for key, value in os.environ.items() if not key.startswith("TRIMTAB_")}
        self.environment = {**plain, "XDG_CONFIG_HOME": str(home), "COLUMNS": "120", **environment}
        self.home = home

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *arguments], env=self.environment, input=stdin, capture_output=True, text=True, timeout=PATIENCE
        )

    def succeed(self, *arguments: str) -> str:
        run = self.run(*arguments)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def fail(self, *arguments: str, code: int = 1) -> str:
        run = self.run(*arguments)
        assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
        assert "Traceback" not in run.stderr
        return run.stderr


def tune_file(tmp_path: Path, component: str, more: str = "") -> str:
    path = tmp_path / "tune.yaml"
    path.write_text(
        f"component: {component}\napplication: small\nobjectives: [{{minimize: seconds, unit: s}}]\n"
        f"algorithm: random\nbudget: {{max_trials: 12}}\n{more}"
    )
    return str(path)
