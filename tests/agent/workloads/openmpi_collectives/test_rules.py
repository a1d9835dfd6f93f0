"""Tests of the rules file, and that mpirun follows it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.workloads.openmpi_collectives.mpi import (
    COLLECTIVES,
    OPEN_MPI_DECIDES,
    WORKLOAD,
    look_up,
    mpirun,
    with_rules,
)
from tests.agent.workloads.shared import module_of

rules = module_of(WORKLOAD, "rules")
CASES = st.tuples(st.sampled_from(COLLECTIVES), st.integers(2, 40), st.sampled_from([4096 << n for n in range(9)]))

DECISIONS = st.tuples(st.integers(0, 9), st.integers(0, 8), st.sampled_from([0, 1024, 65536]))

COMMENTS = st.text(st.characters(codec="utf-8"), max_size=30)


@given(st.dictionaries(CASES, st.tuples(DECISIONS, COMMENTS), min_size=1, max_size=12), CASES, st.integers(-1, 1))
def test_rules_are_valid_only_for_measured_cases(
    measured: dict[tuple[str, int, int], tuple[tuple[int, int, int], str]], asked: tuple[str, int, int], off: int
) -> None:
    text = rules.render(rules.Rule(*case, *decision, comment) for case, (decision, comment) in measured.items())
    for case in [asked, *measured]:
        collective, ranks, size = case
        total = (size * ranks if collective == "gather" else size) + off
        own_ranks = [of for name, of, _ in measured if name == collective]
        expected: tuple[int, ...] = OPEN_MPI_DECIDES
        if own_ranks and min(own_ranks) <= ranks <= max(own_ranks):
            of = max(other for other in own_ranks if other <= ranks)
            scale = of if collective == "gather" else 1
            totals = {
                key[2] * scale: decision for key, (decision, _) in measured.items() if key[:2] == (collective, of)
            }
            if min(totals) <= total < 2 * max(totals):
                expected = totals[max(other for other in totals if other <= total)]
        assert look_up(text, collective, ranks, total) == expected


def test_rules_file_has_comments() -> None:
    text = rules.render([rules.Rule("bcast", 4, 65536, 3, 0, 8192, "pipeline: 12 % less\n7 # no line of its own")])
    assert text.splitlines() == [
        "1 # collectives",
        "7 # bcast",
        "3 # numbers of ranks",
        "0 # ranks and more",
        "1 # message sizes: bytes, algorithm, fan-out, segment size",
        "0 0 0 0 # Open MPI decides",
        "4 # ranks and more",
        "3 # message sizes: bytes, algorithm, fan-out, segment size",
        "0 0 0 0 # Open MPI decides",
        "65536 3 0 8192 # pipeline: 12 % less 7 # no line of its own",
        "131072 0 0 0 # not measured",
        "5 # ranks and more: not measured",
        "1 # message sizes: bytes, algorithm, fan-out, segment size",
        "0 0 0 0 # Open MPI decides",
    ]


def test_contradictory_and_unknown_rules() -> None:
    rule = rules.Rule("bcast", 4, 4096, 1)
    with pytest.raises(ValueError, match="two rules"):
        rules.render([rule, rules.Rule("bcast", 4, 4096, 2)])
    with pytest.raises(ValueError, match="unknown collectives: scatter"):
        rules.render([rules.Rule("scatter", 4, 4096, 1)])


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_mpirun_follows_the_file(collective: str, benchmark: Path, tmp_path: Path) -> None:
    """Open MPI ignores a file that it does not understand, but fails with an algorithm that it does not have: so the
    test sees for which cases Open MPI used the rule.
    """
    file = tmp_path / "rules.conf"
    file.write_text(rules.render([rules.Rule(collective, 3, 8192, 99), rules.Rule("bcast", 9, 8192, 1)]))
    switches = with_rules(file)

    def works(ranks: int, size: int) -> bool:
        return mpirun("-n", str(ranks), *switches, benchmark, collective, str(size), "0.001").returncode == 0

    assert not works(3, 8192)
    assert not works(3, 16380)
    for ranks, size in [(3, 8188), (3, 16384), (2, 8192)]:
        assert works(ranks, size), (ranks, size)
