"""Application matching as a whole: a study proves a gain, and a wrapped command that resembles it gets its settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import trimtab
from tests.factories.agent import RealAgent
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from trimtab.spec import JobMetadata

PROGRAM = 'sleep "${DELAY:-0.4}"; echo "delay ${DELAY:-default}"\n'
DESCRIPTION = """
name: sleeper
parameters:
  delay: {type: float, min: 0.01, max: 0.4, default: 0.4, env: DELAY}
applications:
  main: {command: [sh, PROGRAM, "100"]}
metrics:
  seconds: wall_time
"""
POLICY = "matching: {mode: apply, control_share: 0}\n"


def test_a_proven_setting_reaches_a_wrapped_command(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    program, components = tmp_path / "ant.sh", tmp_path / "components"
    program.write_text(PROGRAM)
    components.mkdir()
    (components / "sleeper.yaml").write_text(DESCRIPTION.replace("PROGRAM", str(program)))
    policy, token, socket = tmp_path / "policy.yaml", tmp_path / "token", tmp_path / "match.sock"
    policy.write_text(POLICY)
    token.write_text(embedded_service.token)
    options = ["--policy", str(policy), "--match-socket", str(socket)]

    def wrapped(*command: str) -> subprocess.CompletedProcess[str]:
        argv = [str(Path(sys.executable).parent / "trimtab-agent"), "wrap", "--socket", str(socket), "--timeout", "30"]
        environment = {name: text for name, text in os.environ.items() if name != "DELAY"}
        return subprocess.run([*argv, "--", *command], env=environment, capture_output=True, text=True, check=False)

    with (
        RealAgent(tmp_path, embedded_service.grpc_address, token, components, name="matching", options=options),
        trimtab.Client(embedded_service.grpc_address, token=embedded_service.token) as client,
    ):
        assert wrapped("sh", str(program), "100").stdout == "delay default\n"
        study = client.create_study(
            "ant",
            space=[trimtab.Float("delay", 0.01, 0.4, default=0.4)],
            objectives=[trimtab.Minimize("seconds")],
            algorithm="random",
            max_trials=12,
            component="sleeper",
            application="main",
            final_check=True,
            job=JobMetadata(name="sh"),
        )
        assert study.wait(timeout=PATIENCE, progress=False) == "COMPLETED"
        assert study.verdict is not None
        assert study.verdict.proven
        [record] = [one for one in client.matching.records() if one.study == "ant"]
        assert record.gain_low > 0
        if record.cause == "approval":
            # Other processes have disturbed the final check on this machine, so that an administrator decides.
            assert study.verdict.disturbed_rounds > 0
            record = client.matching.restore(record.id)
        found = record.params["delay"]

        def applied() -> bool:
            return wrapped("sh", str(program), "100").stdout == f"delay {found}\n"

        # The first match of a new record may come from an answer that the agent has kept for a moment.
        wait_for(applied, "the command gets the proven setting")
        # Another program does not resemble it, and the exit status is the command's own.
        assert "delay" not in wrapped("sh", "-c", "env").stdout.lower().replace(str(tmp_path), "")
        assert wrapped("sh", "-c", "exit 7").returncode == 7
        wait_for(lambda: any(job.considered for job in client.matching.jobs()), "the run time is reported")
