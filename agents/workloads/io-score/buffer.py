"""Build the burst buffer of the workload burst-buffer into a folder, by the commands of its component file."""

import subprocess
import sys
from pathlib import Path

import yaml

BUFFER = Path(__file__).resolve().parent.parent / "burst-buffer"


def main(target: Path) -> int:
    """Run the commands that make the daemon and the preload library; return the status of the first that fails."""
    component = yaml.safe_load((BUFFER / "component.yaml").read_text())
    for command in component["build"]["commands"]:
        words = [word.format(build=target, component=BUFFER) for word in command]
        if str(target / "checkpoint") in words:  # the program of another load
            continue
        if status := subprocess.run(words, check=False).returncode:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
