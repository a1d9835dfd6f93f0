"""A tuned application on a running service: a study whose gain is proven by trials of an agent, over gRPC."""

from __future__ import annotations

from itertools import count
from typing import Any

from service._gen import agent_pb2, agent_pb2_grpc, matching_pb2, tuning_pb2, tuning_pb2_grpc
from tests.factories.grpc_service import spec as make_spec
from tests.factories.grpc_service import unique, value
from tests.factories.patience import PATIENCE

ARGV = ["/home/ada/bin/ant", "--grid", "64"]
_noise = count()


def tune(
    tuning: tuning_pb2_grpc.TuningServiceStub,
    agents: agent_pb2_grpc.AgentServiceStub,
    component: str,
    **job: Any,
) -> str:
    """Run a study of a new component to its proven gain of a fifth for x above a half. Return the study's name.

    `job` says in the spec which job is tuned. Each trial runs the command ARGV.
    """
    agent, study = unique("agent"), unique("tuned")
    x = tuning_pb2.Parameter(name="x", float=tuning_pb2.Parameter.FloatRange(min=0, max=1), default=value(0.5))
    offered = agent_pb2.Component(name=component, digest="ab" * 32, applications=["small"], space=[x], metrics=["loss"])
    agents.Register(
        agent_pb2.RegisterRequest(agent_id=agent, name=agent, slots=1, components=[offered], session_id=unique("s"))
    )
    spec = make_spec(
        space=[x],
        execution=tuning_pb2.Execution(component=component, application="small", parallelism=1),
        budget=tuning_pb2.Budget(max_trials=6),
        final_check=tuning_pb2.FinalCheck(max_trials=12, effects=0),
        job=tuning_pb2.JobMetadata(**job) if job else None,
    )
    tuning.CreateStudy(tuning_pb2.CreateStudyRequest(name=study, spec=spec), timeout=PATIENCE)
    while tuning.GetStudy(tuning_pb2.GetStudyRequest(name=study)).state == tuning_pb2.STUDY_STATE_ACTIVE:
        (lease,) = agents.AcquireLeases(agent_pb2.AcquireLeasesRequest(agent_id=agent, count=1)).leases
        command = agent_pb2.Invocation.Command(step="command", argv=ARGV)
        agents.ReportStarted(
            agent_pb2.ReportStartedRequest(
                agent_id=agent, lease=lease.id, invocation=agent_pb2.Invocation(commands=[command])
            )
        )
        loss = (8.0 if lease.params["x"].number > 0.5 else 10.0) + 0.01 * (next(_noise) % 7)
        agents.SettleLease(
            agent_pb2.SettleLeaseRequest(
                agent_id=agent,
                lease=lease.id,
                outcome=agent_pb2.SettleLeaseRequest.OUTCOME_COMPLETED,
                metrics={"loss": loss},
            )
        )
    return study


def job_like_it(**changes: Any) -> matching_pb2.Job:
    """Return a job that resembles the job of `tune` with `user="ada", name="ant"`."""
    return matching_pb2.Job(
        **{
            "user": "ada",
            "name": "angry_ant",
            "program": "ant",
            "command_line": " ".join([*ARGV, "--verbose"]),
            "nodes": 1,
            "cluster_nodes": 8,
            **changes,
        }
    )
