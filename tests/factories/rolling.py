"""A live system of three instances, which a real agent switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.factories.agent import RealAgent
from tests.factories.service import EmbeddedService

ROLLING = "rolling"
NAMES = ("one", "two", "three")
# Any candidate is faster: the latency is 8 ms with the settings of a trial, and 10 ms without.
COMPONENT = """
name: rolling
parameters:
  size: {{type: int, min: 1, max: 64, default: 4}}
live:
  instances: [one, two, three]
  apply: {{command: [./apply.sh, "{system}/{{instance}}"]}}
  revert: {{command: [./revert.sh, "{system}/{{instance}}"]}}
  verify: {{command: [./show.sh, "{system}/{{instance}}"]}}
  keep: {{command: [./keep.sh, "{system}/{{instance}}"]}}
  metrics:
    latency: {{type: file, file: "{system}/{{instance}}.latency", every: 0.1}}
  guards:
    limit: {{metric: latency, above: 100, for: 0.2}}
  warm_up: 0.05
  block: 0.3
"""
SCRIPTS = {
    "apply.sh": 'cat > "$1.new" && mv "$1.new" "$1" && echo 8 > "$1.latency"',
    "revert.sh": 'rm -f "$1"; if [ -e "$1.own" ]; then echo 8; else echo 10; fi > "$1.latency"',
    "show.sh": 'cat "$1" 2>/dev/null || cat "$1.own" 2>/dev/null || echo \'{"size": 4}\'',
    "keep.sh": 'cat > "$1.own"',
}


@contextmanager
def rolling_system(service: EmbeddedService, folder: Path) -> Iterator[Path]:
    """Run the agent; yield the folder of the system."""
    system, home = folder / "system", folder / "components" / ROLLING
    system.mkdir(parents=True)
    home.mkdir(parents=True)
    for name in NAMES:
        (system / f"{name}.latency").write_text("10")
    (home / "component.yaml").write_text(COMPONENT.format(system=system))
    for name, script in SCRIPTS.items():
        (home / name).write_text(f"#!/bin/sh\n{script}\n")
        (home / name).chmod(0o755)
    policy = folder / "policy.yaml"
    policy.write_text("live: {}")
    policy.chmod(0o600)
    token = service.data_dir / "admin-token"
    options = ["--policy", str(policy)]
    with RealAgent(folder, service.grpc_address, token, home.parent, name=ROLLING, options=options):
        yield system
