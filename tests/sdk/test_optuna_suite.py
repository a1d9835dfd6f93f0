"""Optuna's own tests of samplers, unchanged. docs/how-to/optuna.md has their number.

The case of `SingleOnlySamplerTestCase` is left out: it is for samplers that refuse studies with several objectives.
"""

from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase

import trimtab
from trimtab.optuna import TrimtabSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)


class _Suite:
    @pytest.fixture
    def sampler(self, client: trimtab.Client) -> Callable[[], BaseSampler]:
        return lambda: TrimtabSampler(client, algorithm="random")


@pytest.mark.slow("test_optuna_kinds.py tests the same with fewer trials")
class TestBasic(_Suite, BasicSamplerTestCase):
    pass


@pytest.mark.slow("test_optuna_kinds.py tests the same with fewer trials")
class TestRelative(_Suite, RelativeSamplerTestCase):
    pass


class TestSeveralObjectives(_Suite, MultiObjectiveSamplerTestCase):
    pass
