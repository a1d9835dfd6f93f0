"""The gRPC process under test, and stubs for it."""

from collections.abc import Iterator

import grpc
import pytest

from service._gen import agent_pb2_grpc, tuning_pb2_grpc
from tests.factories.grpc_service import GrpcService, WithToken, migrated, started
from tests.factories.service import EmbeddedService


@pytest.fixture(scope="session")
def template(postgres_url: str, redis_url: str) -> Iterator[GrpcService]:
    """A migrated database."""
    template = migrated(postgres_url, redis_url)
    yield template
    template.close()


@pytest.fixture(scope="session")
def grpc_service(template: GrpcService) -> Iterator[GrpcService]:
    """Shared by all tests: use study names of your own, and leave it running."""
    service = started(template)
    yield service
    service.close()


@pytest.fixture
def own_grpc_service(template: GrpcService) -> Iterator[GrpcService]:
    """A service for tests that stop or break it."""
    service = started(template)
    yield service
    service.close()


@pytest.fixture(scope="session")
def tuning(grpc_service: GrpcService) -> tuning_pb2_grpc.TuningServiceStub:
    return grpc_service.tuning()


@pytest.fixture(scope="session")
def agents(grpc_service: GrpcService) -> agent_pb2_grpc.AgentServiceStub:
    return grpc_service.agents()


@pytest.fixture(scope="session")
def embedded_tuning(embedded_service: EmbeddedService) -> Iterator[tuning_pb2_grpc.TuningServiceStub]:
    """Calls to a service with a worker, which `grpc_service` does not have."""
    with grpc.insecure_channel(embedded_service.grpc_address) as channel:
        yield tuning_pb2_grpc.TuningServiceStub(grpc.intercept_channel(channel, WithToken(embedded_service.token)))
