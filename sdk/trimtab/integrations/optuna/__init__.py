"""Optuna asks a study for its suggestions. Users import the sampler from `trimtab.optuna`."""

try:
    import optuna  # noqa: F401
except ImportError as error:
    raise ImportError('trimtab.optuna needs Optuna 5: pip install "optuna>=5"') from error

from trimtab.integrations.optuna.sampler import TrimtabSampler

__all__ = ["TrimtabSampler"]
