"""The quality of suggestions: `auto` and other optimisers, on synthetic problems with and without noise."""

from tests.benchmarks.quality.compare import run as run
