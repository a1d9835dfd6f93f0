"""The rows of this room."""

from service.fleet.models.agent import Agent
from service.fleet.models.lease import Lease

__all__ = ["Agent", "Lease"]
