"""An agent played by hand: says what a real one says, and measures nothing."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from service._gen import agent_pb2, agent_pb2_grpc, tuning_pb2

SPACE = [
    tuning_pb2.Parameter(
        name="inline",
        integer=tuning_pb2.Parameter.IntRange(min=10, max=1000, log=True),
        default=tuning_pb2.Value(integer=100),
    ),
    tuning_pb2.Parameter(name="unroll", boolean=tuning_pb2.Parameter.BoolRange(), default=tuning_pb2.Value(flag=False)),
]


@contextmanager
def agent(
    address: str, token: str, component: str, *, works: bool = True, digest: str = "ab" * 32, fault: str = ""
) -> Iterator[str]:
    """Run an agent of one slot that offers `component`. If it `works`, each trial reports seconds = inline / 100.

    With a `fault`, each trial prints it and is INFEASIBLE for this reason.
    """
    name = f"hand-{uuid.uuid4().hex[:8]}"
    metadata = (("authorization", f"Bearer {token}"),)
    stopped = threading.Event()
    with grpc.insecure_channel(address) as channel:
        stub: Any = agent_pb2_grpc.AgentServiceStub(channel)
        offered = agent_pb2.Component(
            name=component,
            digest=digest,
            applications=["small"],
            description="By hand.",
            space=SPACE,
            metrics=["seconds"],
        )
        stub.Register(
            agent_pb2.RegisterRequest(
                agent_id=name, name=name, version="1", slots=1, components=[offered], session_id=name
            ),
            metadata=metadata,
        )

        def work() -> None:
            while not stopped.is_set():
                wanted = agent_pb2.AcquireLeasesRequest(agent_id=name, count=1, wait=Duration(seconds=1))
                for lease in stub.AcquireLeases(wanted, metadata=metadata).leases:
                    if fault:
                        output = agent_pb2.AppendLogRequest(agent_id=name, lease=lease.id, data=f"{fault}\n".encode())
                        stub.AppendLog(output, metadata=metadata)
                        cannot = agent_pb2.SettleLeaseRequest(
                            agent_id=name,
                            lease=lease.id,
                            outcome=agent_pb2.SettleLeaseRequest.OUTCOME_INFEASIBLE,
                            reason=fault,
                        )
                        stub.SettleLease(cannot, metadata=metadata)
                        continue
                    stub.SettleLease(
                        agent_pb2.SettleLeaseRequest(
                            agent_id=name,
                            lease=lease.id,
                            outcome=agent_pb2.SettleLeaseRequest.OUTCOME_COMPLETED,
                            metrics={"seconds": lease.params["inline"].integer / 100},
                        ),
                        metadata=metadata,
                    )

        worker = threading.Thread(target=work)
        if works:
            worker.start()
        yield name
        stopped.set()
        if works:
            worker.join()
