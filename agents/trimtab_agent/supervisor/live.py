"""`python -I -S .../supervisor/live.py SOCKET FOLDER`: one trial of a live system. Standard library only."""

import os
import socket
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from trimtab_agent.signals import Signals
from trimtab_agent.supervisor.live_trial import LiveTrial
from trimtab_agent.supervisor.paired import PairedTrial
from trimtab_agent.supervisor.rollout import RolloutTrial
from trimtab_agent.supervisor.supervise import read_spec, store, tell_pid


def main(number: int, folder: str) -> None:
    """Run the trial in `folder`. `number` is the file descriptor of a socket that closes when the agent dies."""
    signals = Signals()
    signals.follow(os.path.join(folder, "cancel"))
    tell_pid(folder)
    with socket.socket(fileno=number) as agent:
        agent.setblocking(False)
        spec = read_spec(folder)
        plan = spec["live"]["plan"]
        kind = LiveTrial if not plan else RolloutTrial if plan["step"] else PairedTrial
        trial = kind(folder, spec, signals, agent)
        result = trial.run()
        os.chdir("/")
        store(folder, result, signals)
        trial.watch()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
