"""The rows of agents, leases, dry runs, component files, recipes and instances of live systems."""

from service.fleet.models.agent import Agent
from service.fleet.models.component_file import ComponentFile
from service.fleet.models.dry_run import DryRun
from service.fleet.models.lease import Lease
from service.fleet.models.live_instance import LiveInstance
from service.fleet.models.recipe import Recipe

__all__ = ["Agent", "ComponentFile", "DryRun", "Lease", "LiveInstance", "Recipe"]
