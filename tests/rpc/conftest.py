"""The gRPC process under test, and stubs for it."""

from collections.abc import Iterator

import pytest

from service._gen import agent_pb2_grpc, tuning_pb2_grpc
from tests.factories.grpc_service import GrpcService, new_service


@pytest.fixture(scope="session")
def grpc_service(postgres_url: str, redis_url: str) -> Iterator[GrpcService]:
    """Shared by all tests: use study names of your own, and leave it running."""
    service = new_service(postgres_url, redis_url)
    yield service
    service.close()


@pytest.fixture
def own_grpc_service(postgres_url: str, redis_url: str) -> Iterator[GrpcService]:
    """For tests that stop or break it."""
    service = new_service(postgres_url, redis_url)
    yield service
    service.close()


@pytest.fixture(scope="session")
def tuning(grpc_service: GrpcService) -> tuning_pb2_grpc.TuningServiceStub:
    return grpc_service.tuning()


@pytest.fixture(scope="session")
def agents(grpc_service: GrpcService) -> agent_pb2_grpc.AgentServiceStub:
    return grpc_service.agents()
