"""The model of the small-read-optimizer, next to the measured tables."""

from types import ModuleType

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.agent.workloads.shared import WORKLOADS, module_of
from tests.benchmarks.tables import TABLES


@pytest.fixture(scope="module")
def model() -> ModuleType:
    return module_of(WORKLOADS / "small-read-optimizer", "model")


def test_the_model_orders_configurations_as_measurements_do(model: ModuleType) -> None:
    subject = TABLES["sro-1"].subject()
    every = [one for one in subject.problem.space.enumerate(1 << 10) or () if subject.row(one) is not None]
    some = every[::9]
    measured = [subject.truth[subject.row(one), 0] for one in some]
    predicted = [model.predict(one, {"application": "sro-1"}) for one in some]
    assert len(some) == 12
    assert spearmanr(predicted, measured).statistic > 0.8
    assert measured[int(np.argmin(predicted))] <= 1.05 * min(measured)


def test_the_model_knows_only_its_patterns(model: ModuleType) -> None:
    assert model.predict({}, {"application": "noise-read"}) is None
