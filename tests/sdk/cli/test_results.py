"""The changes that carry a gain, as `tune` and `study show` print them."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import ConsoleDimensions

from trimtab import Minimize, Study
from trimtab.cli import output
from trimtab.cli.results import _print_effects, certain, print_best
from trimtab.cli.study_json import trial_json
from trimtab.method import Effects, ParameterEffect, SmallestConfiguration, Verdict, VerdictLevel
from trimtab.trial import Interference, Trial, TrialState

LONG = "max_parallel_workers_per_gather"
EFFECTS = Effects(
    "1 of 3 changes keeps 92.3 % of the gain (95 %: 61.0 to 142): jit",
    30,
    0.2,
    (
        ParameterEffect(LONG, 2, 0, 0.091, -0.248, 0.581, matters=False),
        ParameterEffect("shared_buffers", 16384, 5477, -0.209, -0.456, 0.152, matters=False),
        ParameterEffect("jit", True, False, 10.91, 7.85, 15.04, matters=True),
    ),
    SmallestConfiguration(
        {LONG: 2, "shared_buffers": 16384, "jit": False, "work_mem": 4096}, 9.05, 4.85, 15.88, 0.92, 0.61, 1.42
    ),
)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.out, "size", ConsoleDimensions(80, 25))


@pytest.mark.usefixtures("narrow")
def test_names_are_whole_at_80_columns_and_only_changes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _print_effects(EFFECTS)
    shown = capsys.readouterr().out
    heading, _, rest = shown.partition("\n")
    assert heading == f"Changes that matter: {EFFECTS.text}"
    table, _, smallest = rest.partition("Smallest configuration")
    assert all(len(line) <= 80 for line in table.splitlines())
    row = next(line for line in table.splitlines() if line.startswith(" jit"))
    assert row.split() == ["jit", "on", "off", "1091", "(785", "to", "1504)", "matters"]
    # A long name may be folded, and is never cut.
    assert "…" not in table
    assert LONG in "".join(line[1:].split(" ")[0] for line in table.splitlines() if not line.startswith("  "))
    assert smallest == " that keeps the gain, 905 % (485 to 1588): jit off, the rest as in the default\n"


@pytest.mark.parametrize("width", [55, 80])
def test_an_interval_stays_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(output.out, "size", ConsoleDimensions(width, 25))
    _print_effects(EFFECTS)
    shown = capsys.readouterr().out
    for interval in ("1091 (785 to 1504)", "9.1 (-24.8 to 58.1)", "-20.9 (-45.6 to 15.2)"):
        assert interval in shown


def test_texts_of_users_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Rich would take a unit such as [bold] for a style."""
    verdict = Verdict("faster [bold]", VerdictLevel.PROVEN, 1.0, 10, 1.2, 10, 0.12, 0.09, 0.15, 20)
    study = SimpleNamespace(
        best_trials=[SimpleNamespace(params={"x": 1})],
        spec=SimpleNamespace(context=()),
        verdict=verdict,
        objectives=[Minimize("seconds", unit="[bold]")],
        penalties=None,
    )
    assert print_best(cast("Study", study))
    shown = capsys.readouterr().out
    assert "Verdict: proven: faster [bold]\n" in shown
    assert "Recommended: seconds 1 [bold] (10 runs), default 1.2 [bold] (10 runs)\n" in shown


def test_the_word_proven_is_printed_with_a_proven_gain() -> None:
    found = Verdict("faster by 12 % (95 %: 9 to 15)", VerdictLevel.PROVEN, 1.0, 10, 1.2, 10, 0.12, 0.09, 0.15, 20)
    assert certain(found) == "proven: faster by 12 % (95 %: 9 to 15)"
    unknown = Verdict("not yet known: ...", VerdictLevel.UNKNOWN, 1.0, 1, None, 0, None, None, None, 0)
    assert certain(unknown) == "not yet known: ..."


def test_a_trial_of_an_agent_is_shown_as_json() -> None:
    trial = Trial(
        *("study", 1, TrialState.COMPLETED, {"x": 1}, {"s": 2.0}, (), "", "", "agent", 1, "check", None, None, None),
        interference=Interference(share=0.5, wait=0.25, unaffected=("cpu",)),
    )
    shown = json.loads(output.to_json(trial_json(trial)))
    assert shown["interference"]["share"] == 0.5
    assert shown["interference"]["unaffected"] == ["cpu"]
    assert json.loads(output.to_json(trial_json(replace(trial, interference=None))))["interference"] is None
