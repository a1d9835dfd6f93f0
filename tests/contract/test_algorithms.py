"""The contract of algorithms, tested for every algorithm in the registry."""

from service.algorithms import registry
from service.testing.algorithms import AlgorithmContract


class TestAlgorithms(AlgorithmContract):
    # `auto` creates one of the others.
    names = [name for name in registry.names() if name != registry.AUTO]
    # The contract does not depend on the number of samples, but the time of the tests does.
    options = {"botorch": {"mc_samples": 8, "num_restarts": 1, "raw_samples": 16}}
