"""The real agent with a component that does nothing but note when it ran."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.factories.service import EmbeddedService

COMPONENT = "nothing"
APPLICATION = "note-the-time"
# The trial's own time is from the first to the second `date`; the shell around them is the application's.
SCRIPT = """#!/bin/sh
began=$(date +%s%N)
echo "loss=1.0"
echo "$began $(date +%s%N)" >> "$NOTES"
"""
DEFINITION = """
name: {name}
description: Does nothing, and notes when.
parameters:
  x: {{type: float, min: 0, max: 1, default: 0.5, env: X}}
env: {{NOTES: "{notes}"}}
applications:
  {application}:
    command: ["/bin/sh", "{{component}}/note.sh"]
metrics:
  loss: {{type: regex, pattern: 'loss=([\\d.]+)', from: stdout}}
"""


def write_component(folder: Path, notes: Path) -> None:
    """Writes the component below `folder`; its trials append `BEGIN END` in nanoseconds to `notes`."""
    home = folder / COMPONENT
    home.mkdir(parents=True)
    (home / "note.sh").write_text(SCRIPT)
    (home / "component.yaml").write_text(
        DEFINITION.format(name=COMPONENT, notes=notes, application=APPLICATION).lstrip()
    )


@contextmanager
def running_agent(
    service: EmbeddedService, folder: Path, slots: int = 1, options: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """An agent of the service, registered; its state, components and notes are below `folder`."""
    write_component(folder / "components", folder / "notes")
    log = folder / "agent.log"
    command = [sys.executable, "-m", "trimtab_agent.main", "run", "--server", service.grpc_address]
    command += ["--token-file", str(service.data_dir / "admin-token"), "--components", str(folder / "components")]
    command += ["--state-dir", str(folder / "agent"), "--slots", str(slots), *options]
    with log.open("w") as stderr:
        agent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=dict(os.environ))
    assert agent.stdout is not None
    try:
        end = time.monotonic() + 60
        while not agent.stdout.readline().startswith("ready "):
            if agent.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the agent did not start:\n{log.read_text()[-2000:]}")
        yield agent
    finally:
        agent.terminate()
        agent.wait(20)
        agent.stdout.close()
