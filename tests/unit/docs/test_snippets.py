"""How the output of a command is compared with the one that a page shows."""

from pathlib import Path

import pytest

from tests.factories import snippets

SHOWN = """\
trial 1: cpu 0.91 s
trial 12: cpu 0.4 s
 value   gain
 ──────────
 16      1,024 %
"""


@pytest.mark.parametrize(
    ("output", "same"),
    [
        (SHOWN, True),
        ("trial 3: cpu 12 s\n value  gain\n ────\n 128    3.5 %\n", True),
        (SHOWN.replace("trial 12: cpu 0.4 s\n", "trial 4: cpu 3 s\n" * 9), True),
        (SHOWN + " 32      7 %\n", True),
        (SHOWN.replace("cpu", "rate"), False),
        (SHOWN.replace("0.4 s", "none"), False),
        (SHOWN.replace("1,024 %", "1,024"), False),
        ("trial 1: cpu 0.91 s\n", False),
        (SHOWN + "error\n", False),
    ],
)
def test_numbers_and_the_count_of_lines_of_one_run_may_differ(output: str, same: bool) -> None:
    assert (snippets.pattern(SHOWN, vary=True).fullmatch(output) is not None) is same
    assert (snippets.pattern(SHOWN).fullmatch(output) is not None) is (output == SHOWN)


def test_a_page_names_the_lines_that_other_runs_lack(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- numbers vary; may differ: Condition, Verdict -->\n\n```console\n$ run\nVerdict: proven\nbest 3\n```\n"
    )
    (block,) = snippets.blocks(page)
    assert (block.vary, block.differing) == (True, ("Condition", "Verdict"))
    ((_, expected),) = snippets.console(block.text)
    assert snippets.without(expected, block.differing) == "best 3\n"
    assert snippets.without("best 3\n  Condition: busy\nbest 4\n", block.differing) == "best 3\nbest 4\n"
    assert snippets.without("best 3\n", ()) == "best 3\n"


def test_lines_about_other_programs_are_compared_with_nothing() -> None:
    busy = "warning: timing: other processes took 94 % of the 2 CPUs\nVerdict: proven; 8 of 8 rounds were disturbed\n"
    busy += "Condition: 8 of 8 rounds were disturbed: other processes took 95 % of the CPUs\n"
    assert snippets.without(busy, ()) == snippets.without("timing: this machine is quiet\nVerdict: proven\n", ())
    assert snippets.without("timings matter\n", ()) == "timings matter\n"
