"""The rows of agents, leases, dry runs and component files."""

from service.fleet.models.agent import Agent
from service.fleet.models.component_file import ComponentFile
from service.fleet.models.dry_run import DryRun
from service.fleet.models.lease import Lease

__all__ = ["Agent", "ComponentFile", "DryRun", "Lease"]
