"""The supervisor as a batch job: one trial on a node of a cluster, in a folder on a shared file system.

The scheduler may end the job at any moment and start it again elsewhere, while the previous node is only unreachable
and still works. The file `owner` names the job that works on the trial; no other job may store a result.
"""

import json
import os
import time
from contextlib import suppress
from typing import Any

from trimtab_agent.files import is_there, write_atomically
from trimtab_agent.signals import Signals
from trimtab_agent.supervisor import process
from trimtab_agent.supervisor.reaper import Reaper
from trimtab_agent.supervisor.supervise import Supervisor, read_spec, store, tell_pid

# Seconds between the signal that ends the application and the signal to this process: the scheduler signals all
# processes of a job, in any order.
SIGNAL_TIME = 0.1


def run(folder: str, job: str, restart: str, node: str, alone: str = "") -> int:
    """Run the trial in `folder` and store its result. Store none if the scheduler has ended the job.

    Args:
        folder: contains `spec.json`.
        job: the job's name in the scheduler, which stays the same after a restart.
        restart: how often the job was started before.
        node: the node's name; empty: the machine's own name.
        alone: not empty if the scheduler would not end the processes that a killed supervisor leaves.

    Returns:
        The exit code.
    """
    reaper = Reaper(folder) if alone else None
    try:
        return _run(folder, job, restart, node or os.uname().nodename)
    finally:
        if reaper:
            reaper.dismiss()


def _run(folder: str, job: str, restart: str, node: str) -> int:
    process.adopt_orphans()
    signals = Signals(single=True)
    if is_there(folder, "result.json") or is_there(folder, "cancel"):
        return 0
    signals.follow(os.path.join(folder, "cancel"))
    owner = json.dumps([job, int(restart), node])
    if not _claim(folder, owner):
        print(f"another job owns this trial: {_owner(folder)}")
        return 0
    tell_pid(folder)
    for left in ("running", "log", "measurements"):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, left))
    spec = read_spec(folder)
    if int(restart):
        spec["run"] = spec.get("run", 0) + int(restart)
        _renew_work(folder, spec["work"])
    _take_environment(spec, folder)
    result = Supervisor(folder, spec, signals, node, job=folder).run()
    if result["outcome"] not in ("completed", "cancelled"):
        time.sleep(SIGNAL_TIME)
        if signals.stopped:
            result |= {"outcome": "cancelled", "reason": "cancelled", "metrics": {}}
            result |= {"reason_code": "", "reason_values": {}}
    os.chdir("/")
    if result["outcome"] == "cancelled" and not is_there(folder, "cancel"):
        # The scheduler has ended the job, not the agent. The job's state says why, and it may be restarted.
        print("SIGTERM received, not from the agent")
        return 1
    if _owner(folder) == json.loads(owner):
        store(folder, result, signals)
    return 0


def _claim(folder: str, owner: str) -> bool:
    """Return whether this job may work on the trial. A job that the scheduler has restarted takes it over. A second
    job, submitted because the answer to the first submission was lost, does not."""
    path = os.path.join(folder, "owner")
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(owner)
    try:
        os.link(temporary, path)  # atomic, and only the first succeeds
    except FileExistsError:
        before, now = _owner(folder), json.loads(owner)
        if before[0] != now[0] or before[1] >= now[1]:
            return False
        write_atomically(path, owner.encode())
    finally:
        os.unlink(temporary)
    return True


def _owner(folder: str) -> list[Any]:
    with open(os.path.join(folder, "owner"), encoding="utf-8") as file:
        found: list[Any] = json.load(file)
        return found


def _renew_work(folder: str, work: str) -> None:
    """Restore the work folder to its state before the interrupted run."""
    import shutil

    shutil.rmtree(work, ignore_errors=True)
    fresh = os.path.join(folder, "fresh")
    if os.path.isdir(fresh):
        shutil.copytree(fresh, work, symlinks=True)
    else:
        os.mkdir(work)


def _take_environment(spec: dict[str, Any], folder: str) -> None:
    """Replace the agent's environment by the job's on this node, which tells programs such as mpirun where they run.
    Variables that the component sets stay."""
    base = {**os.environ, process.JOB_VARIABLE: folder}
    for part in (spec, spec["build"]):
        if part:
            part["env"] = {**base, **{name: part["env"][name] for name in part["own_env"]}}
    spec["base_env"] = base
