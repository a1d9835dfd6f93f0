"""Child processes of a client's program: each has a connection and a name of its own, however it was started."""

import json
import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.sdk.forking import CHILDREN, TRIALS
from trimtab._internal.connection.channel import Channel
from trimtab.errors import Unavailable

# A child that was forked within the function ends as most programs do, by an exception, which must not reach the
# service as the result of the parent's trial.
LEAVES = """
import os, sys, time
import trimtab
study = trimtab.Client().get_study(sys.argv[1])
def fn(params):
    child = os.fork()
    if child == 0:
        {end}
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == {status}, status
    return 1.0
study.optimize(fn, n_trials=2, parallel={parallel}, progress=False)
print("told")
"""
CLOSES = """
import os, sys
import trimtab
with trimtab.Client() as client:
    study = client.get_study(sys.argv[1])
    [trial] = study.ask()
    child = os.fork()
    if child == 0:
        study.refresh()
    else:
        assert os.waitpid(child, 0)[1] == 0
        assert study.tell(trial, 1.0).state == "COMPLETED"
if child:
    print("told")
"""
REFUSED = """
import os, sys
import trimtab
study = trimtab.Client().get_study(sys.argv[1])
child = os.fork()
if child == 0:
    try:
        study.ask()
    except trimtab.TrimtabError as error:
        print(error.code, error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
study.tell(study.ask()[0], 1.0)
print("the parent goes on")
"""


def environment(service: EmbeddedService, **more: str) -> dict[str, str]:
    # The processes of the tests switch gRPC's support of forks off.
    own = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}
    return {**own, "TRIMTAB_URL": service.grpc_address, "TRIMTAB_TOKEN": service.token, **more}


def run(service: EmbeddedService, *arguments: str, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment(service, **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "way",
    [
        "fork:optimize",
        "fork:ask",
        "fork:threads",
        "fork:name",
        "fork:busy",
        "fork:pool",
        "fork:optuna",
        "spawn:ask",
        "forkserver:ask",
        "spawn:pool",
        "joblib",
    ],
)
def test_children_never_measure_the_same_trial(
    embedded_service: EmbeddedService, client: trimtab.Client, name: str, tmp_path: Path, way: str
) -> None:
    if way == "joblib":
        pytest.importorskip("joblib")
    storage = f"sqlite:///{tmp_path / 'optuna.db'}"
    found = json.loads(run(embedded_service, "-m", "tests.sdk.forking", way, name, STORAGE=storage))
    names = [own for own, _ in found["children"]]
    assert len({*names, found["parent"]}) == len(names) + 1
    measured = [number for _, numbers in found["children"] for number in numbers]
    if way == "fork:optuna":
        trials = client.get_study(f"{name}-optuna").trials(["COMPLETED"])
        assert len(trials) == 2 + CHILDREN * TRIALS
        assert len(measured) == len(set(measured)) == CHILDREN * TRIALS
        return
    assert sorted([*measured, found["held"]]) == list(range(1, CHILDREN * TRIALS + 2))
    trials = client.get_study(name).trials()
    assert {trial.state for trial in trials} == {"COMPLETED"}
    assert len(trials) == CHILDREN * TRIALS + 1


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_three_parents_share_a_study(
    embedded_service: EmbeddedService, client: trimtab.Client, name: str, method: str
) -> None:
    command = [sys.executable, "-m", "tests.sdk.forking", f"{method}:ask", name]
    parents = [
        subprocess.Popen(command, env=environment(embedded_service), stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [parent.communicate(timeout=PATIENCE)[0] for parent in parents]
    assert [parent.returncode for parent in parents] == [0, 0, 0]
    found = [json.loads(output) for output in outputs]
    measured = [number for one in found for _, numbers in one["children"] for number in numbers]
    held = [one["held"] for one in found]
    assert sorted(measured + held) == list(range(1, 3 * (CHILDREN * TRIALS + 1) + 1))
    assert {trial.state for trial in client.get_study(name).trials()} == {"COMPLETED"}


@pytest.mark.parametrize("parallel", [1, 2])
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("sys.exit(3)", 3),
        ("raise RuntimeError('of the child')", 1),
        ("return 9.0", 1),
        ("raise trimtab.Infeasible('child')", 1),
    ],
)
def test_a_child_that_is_forked_within_the_function_reports_nothing(
    embedded_service: EmbeddedService, client: trimtab.Client, name: str, end: str, status: int, parallel: int
) -> None:
    study = client.create_study(
        name, [trimtab.Float("x", 0, 1)], [trimtab.Minimize("value")], algorithm="random", noisy=False
    )
    assert "told" in run(embedded_service, "-c", LEAVES.format(end=end, status=status, parallel=parallel), name)
    assert [(trial.state, trial.metrics) for trial in study.trials()] == [("COMPLETED", {"value": 1.0})] * 2


def test_a_channel_that_a_fork_renews_leaves_grpc_no_time_to_shut_down() -> None:
    """While gRPC shuts down, its thread has a lock for which a forked child would wait for ever."""
    opened: list[grpc.Channel] = []

    def open_channel() -> grpc.Channel:
        opened.append(grpc.insecure_channel("localhost:1"))
        return opened[-1]

    channel = Channel(open_channel)
    generation, first = channel.current()
    channel.renew()
    assert len(opened) == 2
    assert channel.current() == (generation + 1, opened[1])
    assert opened[1] is not first
    channel.close()
    assert len(opened) == 2
    with pytest.raises(Unavailable, match="client is closed"):
        channel.current()


def test_a_child_that_leaves_the_client_does_not_close_the_parent_s(
    embedded_service: EmbeddedService, client: trimtab.Client, name: str
) -> None:
    client.create_study(name, [trimtab.Float("x", 0, 1)], [trimtab.Minimize("value")], algorithm="random")
    assert run(embedded_service, "-c", CLOSES, name).strip() == "told"


def test_a_child_in_which_grpc_cannot_work_says_why_and_what_to_do(
    embedded_service: EmbeddedService, client: trimtab.Client, name: str
) -> None:
    client.create_study(name, [trimtab.Float("x", 0, 1)], [trimtab.Minimize("value")], algorithm="random")
    off = {"GRPC_ENABLE_FORK_SUPPORT": "false"}
    said = run(embedded_service, "-c", REFUSED, name, **off)
    why, then = said.splitlines()
    assert why.startswith("forked GRPC_ENABLE_FORK_SUPPORT switches off gRPC's support of forks. Unset it.")
    assert "'spawn'" in why
    assert then == "the parent goes on"
