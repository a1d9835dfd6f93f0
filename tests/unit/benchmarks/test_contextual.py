"""The surfaces with a context, and a short study on one."""

import pytest

from tests.benchmarks.contextual import CONTEXTS, best, shares, synthetic, tables, truth


def test_the_best_settings_of_each_context_reach_the_best_time() -> None:
    for context in CONTEXTS:
        high, hit = context["load"] == "high", float(context["hit"])
        settings = {"x": 0.15 + 0.7 * hit, "y": 0.8 if high else 0.3, "mode": "b" if high else "c"}
        assert truth({**settings, **context}) == pytest.approx(best(context))


def test_the_best_settings_of_a_table_differ_by_device() -> None:
    differ = 0
    for seed in range(10):
        surface = tables(seed)
        assert surface.share({"policy": "a", "cached": "both", "read": "same", "device": "slow", "busy": 0}) <= 1
        found = {
            device: max(
                (
                    {"policy": policy, "cached": cached, "read": read}
                    for policy in "abcd"
                    for cached in ("both", "raw", "gzip")
                    for read in ("same", "gzip", "raw")
                ),
                key=lambda one: surface.share({**one, "device": device, "busy": 0}),
            )
            for device in ("slow", "fast")
        }
        assert surface.share({**found["slow"], "device": "slow", "busy": 0}) == pytest.approx(1.0)
        differ += found["slow"] != found["fast"]
    assert differ >= 5


@pytest.mark.slow("a benchmark with two searches, which takes minutes")
@pytest.mark.parametrize("seed", [100, 101])
def test_a_study_with_a_context_finds_good_settings_in_each(seed: int) -> None:
    # 20 other seeds had a mean of 97.6 %.
    found = shares(synthetic(), "context", seed, 48)
    assert sum(found) / len(found) >= 0.92
