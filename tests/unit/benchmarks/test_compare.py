"""The comparison of optimisers by their searches."""

from tests.benchmarks.quality.compare import shares_won


def test_the_share_won_counts_common_seeds_and_halves_of_ties() -> None:
    found = {
        ("ours", "a"): [1.0, 2.0, 3.0, 0.0],
        ("peer", "a"): [2.0, 2.0, 1.0],
        ("ours", "b"): [1.0],
        ("peer", "b"): [4.0],
        ("other", "b"): [0.5],
    }
    records = [
        {"optimiser": optimiser, "case": case, "seed": seed, "recommended": value}
        for (optimiser, case), values in found.items()
        for seed, value in enumerate(values)
    ]
    assert shares_won(records) == {"peer": [50.0, 100.0], "other": [0.0]}
