"""The Ray runner on a cluster of two nodes: where trials run, and what becomes of those of a node that is lost."""

import asyncio
import os
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import trimtab
from tests.agent.conftest import AgentProcess, processes_of
from tests.agent.slurm_runner.jobs import job
from tests.agent.test_with_service import finished
from tests.factories.patience import PATIENCE, wait_for, wait_for_async
from tests.factories.ray import CPUS, RayHead, RayNode
from tests.factories.service import EmbeddedService, require_program
from trimtab_agent.runners import ray_spread
from trimtab_agent.runners.base import JobResult, Outcome
from trimtab_agent.runners.ray import RayRunner

HEAD = os.uname().nodename
# Names distinguish the nodes, which are one machine here.
OTHER = "ray-other"
ON_OTHER = '--resources={"bench": 1}'


@pytest.fixture(scope="module")
def other(ray_session: RayHead) -> Iterator[RayNode]:
    """A second node, which alone has `bench`."""
    require_program("unshare", "util-linux")
    with ray_session.joined(OTHER, "--num-cpus=4", '--resources={"bench": 2}') as node:
        yield node


@pytest.fixture
def runner(ray_session: RayHead, other: RayNode) -> Iterator[RayRunner]:
    made = RayRunner(ray_session.dashboard)
    yield made
    made.close()


async def ended(runner: RayRunner, folder: Path) -> JobResult:
    return await asyncio.wait_for(runner.wait(folder), PATIENCE)


async def test_trials_run_on_nodes_that_have_their_resources(runner: RayRunner, tmp_path: Path) -> None:
    """A resource that one node has; more CPUs than it has."""
    jobs = {
        OTHER: job(tmp_path, "bench", "true", scheduler_options=[ON_OTHER]),
        HEAD: job(tmp_path, "large", "true", scheduler_options=[f"--num-cpus={CPUS - 2}"]),
    }
    await asyncio.gather(*(runner.submit(*one) for one in jobs.values()))
    results = {node: await ended(runner, folder) for node, (folder, _) in jobs.items()}
    assert {node: (result.outcome, result.node) for node, result in results.items()} == {
        node: (Outcome.COMPLETED, node) for node in (OTHER, HEAD)
    }


async def test_replicates_are_spread_over_nodes(runner: RayRunner, tmp_path: Path) -> None:
    """The service reports the nodes of other replicates. They decide where there is a choice."""
    jobs = []
    before = {"head": [HEAD], "other": [OTHER], "both": [HEAD, OTHER, OTHER], "only": [OTHER] * 3}
    for name, measured_on in before.items():
        options = [ON_OTHER] if name == "only" else []
        reported = {"replicates": name, "measured_on": measured_on, "scheduler_options": options}
        jobs.append(job(tmp_path, name, "true", **reported))
    await asyncio.gather(*(runner.submit(*one) for one in jobs))
    nodes = [(await ended(runner, folder)).node for folder, _ in jobs]
    assert dict(zip(before, nodes, strict=True)) == {"head": OTHER, "other": HEAD, "both": HEAD, "only": OTHER}


async def test_jobs_that_are_compared_run_on_one_node(runner: RayRunner, tmp_path: Path) -> None:
    jobs = [job(tmp_path, f"{node}{number}", "true", same_node=node) for node in (HEAD, OTHER) for number in range(2)]
    jobs.append(job(tmp_path, "gone", "true", same_node="no-such-node"))
    await asyncio.gather(*(runner.submit(*one) for one in jobs))
    nodes = [(await ended(runner, folder)).node for folder, _ in jobs]
    assert nodes[:4] == [HEAD, HEAD, OTHER, OTHER]
    assert nodes[4] in (HEAD, OTHER)


@pytest.mark.slow("spread replicates show the same placement")
async def test_replicates_submitted_together_run_on_different_nodes(
    runner: RayRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may need more than the usual 10 s to start the first of the two.
    monkeypatch.setattr(ray_spread, "TURN_TIME", 60.0)
    gate = tmp_path / "gate"
    wait = ["sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done"]
    jobs = [job(tmp_path, name, *wait, replicates="c") for name in ("first", "second")]
    await asyncio.gather(*(runner.submit(*one) for one in jobs))
    for folder, _ in jobs:
        await wait_for_async((folder / "running").exists)
    gate.touch()
    nodes = [(await ended(runner, folder)).node for folder, _ in jobs]
    assert sorted(nodes) == sorted([HEAD, OTHER])


@pytest.mark.slow("spread replicates show the same placement")
async def test_a_replicate_does_not_wait_for_ever_for_its_node(
    runner: RayRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs elsewhere then; and once only, although the job that has waited begins too when the node is free."""
    monkeypatch.setattr(ray_spread, "PATIENCE", 2.0)
    gate, ran = tmp_path / "gate", tmp_path / "ran"
    busy, spec = job(tmp_path, "busy", "sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done")
    await runner.submit(busy, replace(spec, scheduler_options=["--num-cpus=4", ON_OTHER]))
    await wait_for_async((busy / "running").exists)
    folder, spec = job(tmp_path, "impatient", "sh", "-c", f"echo >> {ran}", replicates="c", measured_on=[HEAD])
    await runner.submit(folder, spec)
    first = (folder / "job").read_text()
    result = await ended(runner, folder)
    assert (result.outcome, result.node) == (Outcome.COMPLETED, HEAD)
    assert (folder / "job").read_text() != first
    gate.touch()
    assert (await ended(runner, busy)).outcome is Outcome.COMPLETED
    await until_over(runner, first)
    assert ran.read_text() == "\n"


async def until_over(runner: RayRunner, name: str) -> None:
    """Wait until Ray has ended a job."""
    async with asyncio.timeout(PATIENCE):
        while not (await runner._dashboard.jobs())[name].is_over:  # noqa: ASYNC110  it is Ray that is asked
            await asyncio.sleep(0.2)


# -- a node is lost; the last test of this file, for it is gone then

COMPONENT = """
name: NAME
parameters:
  x: {type: float, min: 0, max: 10, default: 5, flag: "{value}"}
applications:
  main:
    command: [sh, -c, 'uname -n >> "{component}/ran"; [ "$(uname -n)" = OTHER ] && sleep 100; echo "value=$0"']
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""


async def occupy(head: RayHead, folder: Path) -> None:
    """Take all of the head's CPUs, until there is a file `gate`."""
    runner = RayRunner(head.dashboard)
    busy, spec = job(folder, "busy", "sh", "-c", f"until [ -e {folder}/gate ]; do sleep 0.05; done")
    await runner.submit(busy, replace(spec, scheduler_options=[f"--num-cpus={CPUS}"]))
    await wait_for_async((busy / "running").exists)
    runner.close()


@pytest.mark.slow("starts a second head of Ray and loses a node")
def test_the_trial_of_a_node_that_is_lost_is_tried_again(
    ray_session: RayHead, other: RayNode, embedded_service: EmbeddedService, tmp_path: Path
) -> None:
    name = f"ray-lost-{zlib.crc32(str(tmp_path).encode()):08x}"
    agent = AgentProcess(tmp_path, int(embedded_service.grpc_address.rpartition(":")[2]), embedded_service.token)
    agent.components.mkdir()
    (agent.components / "c.yaml").write_text(COMPONENT.replace("NAME", name).replace("OTHER", OTHER))
    with trimtab.Client(embedded_service.grpc_address, token=embedded_service.token) as client:
        try:
            # so that the first trial begins on the other node
            asyncio.run(occupy(ray_session, tmp_path))
            agent.start("--runner", "ray", "--ray-address", ray_session.dashboard, "--ray-option=--num-cpus=1")
            study = client.create_study(
                name,
                space=[trimtab.Float("x", 0, 10, default=5.0)],
                objectives=[trimtab.Minimize("value")],
                algorithm="random",
                max_trials=2,
                component=name,
                final_check=False,
                application="main",
            )
            ran = agent.components / "ran"
            wait_for(lambda: ran.exists() and OTHER in ran.read_text())
            other.end()
            (tmp_path / "gate").touch()
            trials = finished(study)
        finally:
            (tmp_path / "gate").touch()
            agent.clear_away()
    assert [(trial.number, trial.state, trial.metrics["value"]) for trial in trials] == [
        (number, "COMPLETED", trial.params["x"]) for number, trial in enumerate(trials, 1)
    ]
    assert ran.read_text().split().count(OTHER) == 1
    assert ran.read_text().split().count(HEAD) == 2
    wait_for(lambda: not processes_of(agent.state))
