"""Ray Tune runs the trials of a study. Users import the names from `trimtab.ray`."""

try:
    import ray.tune  # noqa: F401
except ImportError as error:
    raise ImportError('trimtab.ray needs Ray Tune: pip install "ray[tune]"') from error

from trimtab.integrations.ray.scheduler import TrimtabScheduler
from trimtab.integrations.ray.search import TrimtabSearch

__all__ = ["TrimtabScheduler", "TrimtabSearch"]
