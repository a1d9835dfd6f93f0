"""One verdict for a study, in the same numbers for everyone who asks."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import trimtab
from service.policies.check import percent_text
from service.tuner.verdict import Finding
from tests.factories.browser import NEEDS_BROWSER
from tests.factories.console import Rest
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from tests.factories.verdict_studies import make_studies, name_of
from tests.marks import slow_cases
from trimtab.cli.quantities import quantity

pytestmark = NEEDS_BROWSER

# The numbers that lists and best known settings have, by their names there.
LISTED = {
    "level": "level",
    "default": "default",
    "best": "value",
    "gain": "gain",
    "low": "low",
    "high": "high",
    "runs": "runs",
    "default_runs": "default_runs",
    "measured": "measured",
    "doubtful": "doubtful",
}


def cli(service: EmbeddedService, *arguments: str) -> str:
    environment = {**os.environ, "TRIMTAB_URL": service.grpc_address, "TRIMTAB_TOKEN": service.token}
    command = [str(Path(sys.executable).with_name("trimtab")), *arguments]
    run = subprocess.run(
        command, env={**environment, "COLUMNS": "300"}, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def of_sdk(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict of REST as the SDK has it. With codes and values, the console translates the sentences."""
    found = {**verdict, "conditions": [one["text"] for one in verdict["conditions"]]}
    del found["advice_data"]
    found["params"] = found.pop("configuration")
    if found["compared"] is not None:
        found["compared"] = {**found["compared"]}
        found["compared"]["params"] = found["compared"].pop("configuration")
    return found


def percent(share: float) -> str:
    return percent_text(share).replace("-", "\u2212")


def expect_numbers(place: Locator, verdict: dict[str, Any], objective: trimtab.Minimize) -> None:
    """Expect that a part of the console shows the gain, its interval and the value to the digit."""
    expect(place).to_contain_text(f"{percent(verdict['gain'])} %")
    expect(place).to_contain_text(f"{percent(verdict['low'])} to {percent(verdict['high'])} %")
    expect(place).to_contain_text(quantity(verdict["value"], objective))


def check_everywhere(
    page: Page, api: Rest, service: EmbeddedService, name: str, metric: str, unit: str
) -> dict[str, Any]:
    """Expect the same verdict of a study in REST, SDK, command, exports and console, and return it."""
    objective = trimtab.Minimize(metric, unit)
    verdict: dict[str, Any] = api("GET", f"/studies/{name}/analysis")["verdict"]
    assert verdict["gain"] == pytest.approx(1 - verdict["value"] / verdict["default"])

    with trimtab.Client(service.grpc_address, token=service.token) as client:
        found = client.get_study(name).verdict
    assert found is not None
    assert api("GET", f"/studies/{name}/trials.json")["verdict"] == verdict
    assert verdict["code"] in (one.value for one in Finding)
    assert json.loads(json.dumps(asdict(found))) == of_sdk(verdict)
    effects = verdict["effects"]

    assert json.loads(cli(service, "study", "show", name, "--json"))["verdict"] == of_sdk(verdict)
    shown = cli(service, "study", "show", name)
    assert f"{verdict['text']}\n" in shown
    assert effects is None or f"Changes that matter: {effects['text']}\n" in shown
    assert f"Recommended: {metric} {quantity(verdict['value'], objective)} ({verdict['runs']} run" in shown
    assert f"default {quantity(verdict['default'], objective)} ({verdict['default_runs']} run" in shown

    (row,) = csv.DictReader(io.StringIO(api.text(f"/studies/{name}/verdict.csv")))
    assert (row["study"], row["level"], row["text"]) == (name, verdict["level"], verdict["text"])
    assert row["effects"] == (effects["text"] if effects else "")
    for key in ("value", "default", "gain", "low", "high", "runs", "default_runs", "trials", "measured", "doubtful"):
        assert float(row[key]) == verdict[key], key

    def listed() -> dict[str, Any]:
        [one] = [study for study in api("GET", "/studies?page_size=100")["studies"] if study["name"] == name]
        return one["objectives"][0] if one["objectives"] else {}

    # The list is some seconds behind.
    expected = {key: verdict[own] for key, own in LISTED.items()}
    wait_for(lambda: {key: listed().get(key) for key in LISTED} == expected, "the list has the last numbers")
    [curve] = api("GET", f"/comparison?study={name}")["curves"]
    assert {key: curve["objective"][key] for key in LISTED} == expected

    for path in ("", "/report"):
        page.goto(f"/studies/{name}{path}")
        gain = page.get_by_role("region", name="Gain over the default")
        expect(gain).to_contain_text(verdict["text"])
        expect_numbers(gain, verdict, objective)
        expect(gain).to_contain_text(f"Default{quantity(verdict['default'], objective)}")
        changes = page.get_by_role("region", name="Changes that matter")
        expect(changes).to_have_count(0 if effects is None else 1)
        if effects is not None:
            expect(changes).to_contain_text(effects["text"])
            for one in effects["parameters"]:
                row_of_one = changes.get_by_role("row").filter(has_text=one["name"])
                expect(row_of_one).to_contain_text(f"{abs(100 * one['effect']):.1f}")
    page.goto(f"/studies?search={name}")
    expect_numbers(page.get_by_role("row").filter(has_text=name), verdict, objective)
    page.goto(f"/compare?study={name}")
    expect_numbers(page.get_by_role("row").filter(has_text=name), verdict, objective)
    return verdict


@pytest.mark.parametrize(
    ("check", "level"),
    [
        ({"max_trials": 12}, "proven"),
        *slow_cases("the proven verdict shows the same places", (None, "provisional")),
    ],
)
def test_everyone_reads_the_same_verdict(
    page: Page, api: Rest, service: EmbeddedService, check: dict[str, int] | None, level: str
) -> None:
    name = f"verdict-{level}"
    api.study(name, algorithm={"name": "ga"}, noisy=True, budget={"max_trials": 24}, final_check=check)
    api.measure(name, 24)
    while api("GET", f"/studies/{name}")["state"] == "ACTIVE":
        api.measure(name, 1)
    verdict = check_everywhere(page, api, service, name, "seconds", "s")
    assert verdict["level"] == level
    assert (verdict["effects"] is not None) == (level == "proven")


@pytest.mark.slow("the verdict that everyone reads shows the same numbers")
def test_the_best_known_settings_have_the_numbers_of_the_verdict(
    page: Page, api: Rest, service: EmbeddedService
) -> None:
    """bowl-1 has a final check; bowl-2 is searched for much longer, without one so far.

    Other tests may have tuned the component, too: for other applications, or with a larger proven gain.
    """
    (best,) = [one for one in api("GET", "/components/bowl")["best"] if one["application"] == "only"]
    name = best["study"]
    assert name != "bowl-2"
    verdict = check_everywhere(page, api, service, name, "value", "")
    assert verdict["level"] == "proven"
    assert {key: best["objective"][key] for key in LISTED} == {key: verdict[own] for key, own in LISTED.items()}
    with trimtab.Client(service.grpc_address, token=service.token) as client:
        (found,) = [one for one in client.best_settings("bowl") if one.study == name]
    # The effects of the changes are shown with the study alone.
    assert asdict(found.verdict) == {
        **of_sdk(verdict),
        "conditions": tuple(of_sdk(verdict)["conditions"]),
        "effects": None,
    }
    assert dict(found.params) == best["configuration"]
    assert (found.machine, found.elsewhere) == (best["machine"], False)
    assert found.machine != ""
    shown = cli(service, "best", "bowl")
    assert f"{verdict['text']}\n" in shown
    assert f"Machine: {found.machine}\n" in shown
    (printed,) = [one for one in json.loads(cli(service, "best", "bowl", "--json")) if one["study"] == name]
    assert printed["verdict"] == {**of_sdk(verdict), "effects": None}
    page.goto("/components/bowl")
    settings = page.get_by_role("region", name="Best known settings")
    expect_numbers(settings, verdict, trimtab.Minimize("value"))
    expect(settings).to_contain_text(found.machine)


def test_only_a_proven_gain_is_green(page: Page, api: Rest) -> None:
    """Wherever the console shows a gain, with the colours of the page itself."""
    green = {"verdict-green": True, "verdict-gray": False}
    for name, check in (("verdict-green", {"max_trials": 12}), ("verdict-gray", None)):
        api.study(name, algorithm={"name": "ga"}, noisy=True, budget={"max_trials": 24}, final_check=check)
        api.measure(name, 24)
        while api("GET", f"/studies/{name}")["state"] == "ACTIVE":
            api.measure(name, 1)
    levels = {name: api("GET", f"/studies/{name}/analysis")["verdict"]["level"] for name in green}
    assert levels == {"verdict-green": "proven", "verdict-gray": "provisional"}
    for name, is_green in green.items():

        def summarised(name: str = name) -> bool:
            (study,) = api("GET", f"/studies?search={name}")["studies"]
            return bool(study["objectives"]) and study["objectives"][0]["level"] == levels[name]

        wait_for(summarised, "the list has the level")
        for path, text in (
            (f"/studies/{name}", "better"),
            (f"/studies?search={name}", "%"),
            (f"/compare?study={name}", "better"),
            ("/", "better"),
        ):
            page.goto(path)
            if path.startswith(("/studies/", "/report")):
                place = page.get_by_role("region", name="Gain over the default")
            elif path == "/":
                place = page.get_by_role("listitem").filter(has_text=name)
            else:
                place = page.get_by_role("row").filter(has_text=name)
            expect(place.first).to_contain_text(text)
            colours = place.first.evaluate(
                """place => {
                    const good = document.createElement("span");
                    good.style.color = "var(--good)";
                    place.append(good);
                    const green = getComputedStyle(good).color;
                    good.remove();
                    const shown = [...place.querySelectorAll("*")].filter(one => one.textContent.includes("%"));
                    return shown.filter(one => getComputedStyle(one).color === green).length;
                }"""
            )
            assert (colours > 0) == is_green, f"{path}: {colours}"


def test_a_study_that_has_ended_is_checked_and_continued_in_the_console(page: Page, api: Rest) -> None:
    name = "verdict-later"
    api.study(name, algorithm={"name": "ga"}, noisy=True, budget={"max_trials": 16}, final_check=None)
    api.measure(name, 16)
    gain = page.get_by_role("region", name="Gain over the default")
    page.goto(f"/studies/{name}")
    expect(gain).not_to_contain_text("Final check,")
    page.get_by_role("button", name="Run the final check").click()
    dialogue = page.get_by_role("dialog", name=f"Final check of {name}")
    dialogue.get_by_label("Trials at most").fill("4")
    dialogue.get_by_role("button", name="Start check").click()
    expect(dialogue).to_contain_text("final_check.max_trials")
    dialogue.get_by_label("Trials at most").fill("12")
    dialogue.get_by_label("which changes matter").fill("15")
    dialogue.get_by_role("button", name="Start check").click()
    expect(dialogue).to_contain_text("final_check.effects")
    dialogue.get_by_label("which changes matter").fill("16")
    # Twice before the page can show that it is at work.
    dialogue.get_by_role("button", name="Start check").evaluate("button => { button.click(); button.click(); }")
    expect(dialogue).to_be_hidden()
    expect(gain).to_contain_text("The final check is running")
    while api("GET", f"/studies/{name}")["state"] == "ACTIVE":
        api.measure(name, 1)
    expect(gain).to_contain_text("Final check, ")
    before = api("GET", f"/studies/{name}/analysis")["verdict"]
    assert before["trials"] <= 12
    page.get_by_role("button", name="Continue").click()
    dialogue = page.get_by_role("dialog", name=f"Continue {name}")
    expect(dialogue.get_by_label("Trials")).to_have_value("24")
    dialogue.get_by_label("Trials").fill("18")
    dialogue.get_by_role("button", name="Continue search").click()
    expect(dialogue).to_be_hidden()
    expect(gain).to_contain_text("The study continues.")
    expect(gain).to_contain_text(before["text"])
    assert api("GET", f"/studies/{name}")["state"] == "ACTIVE"
    api.measure(name, 2)
    expect(gain).to_contain_text("The final check is running")
    while api("GET", f"/studies/{name}")["state"] == "ACTIVE":
        api.measure(name, 1)
    expect(gain).not_to_contain_text("The study continues.")
    after = api("GET", f"/studies/{name}")
    assert after["state_reason"] == "All 18 trials of the budget are done."
    verdicts = [before, api("GET", f"/studies/{name}/analysis")["verdict"]]
    assert after["check_count"] == sum(one["trials"] + (one["effects"] or {"trials": 0})["trials"] for one in verdicts)


def test_the_console_says_what_has_disturbed_a_gain_and_what_is_not_recommended(
    page: Page, api: Rest, service: EmbeddedService
) -> None:
    make_studies(service, ["proven-disturbed", "worse", "injected", "limits"])
    gain = page.get_by_role("region", name="Gain over the default")
    page.goto(f"/studies/{name_of('proven-disturbed')}")
    expect(gain).to_contain_text(re.compile(r"proven: faster by .*; \d+ of \d+ rounds were disturbed"))
    expect(gain.get_by_role("list", name="Conditions")).to_contain_text("other processes took 33 % of the CPUs")
    expect(gain).to_contain_text("give the metric the type cpu_time")
    page.goto(f"/studies?search={name_of('proven-disturbed')}")
    row = page.get_by_role("row").filter(has_text=name_of("proven-disturbed"))
    expect(row).to_contain_text(re.compile(r"proven, \d+ of \d+ rounds were disturbed"))

    page.goto(f"/studies/{name_of('worse')}")
    expect(gain).to_contain_text("The default is better")
    expect(gain).to_contain_text("The default is recommended. Compared with it: x 0.")
    best = page.get_by_role("region", name="Best configuration")
    expect(best).to_contain_text("0 of 2 parameters differ from the default.")

    page.goto(f"/studies/{name_of('injected')}")
    expect(gain).to_contain_text("under injected contention")
    matching = page.get_by_role("region", name="Application matching")
    expect(matching).to_contain_text("needs approval")
    expect(matching).to_contain_text("The gain was measured under injected contention.")
    matching.get_by_role("link", name="Record").click()
    page.get_by_role("button", name="Approve …").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve record").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    (record,) = api("GET", f"/matching/records?study={name_of('injected')}")["records"]
    assert (record["state"], record["state_reason"]) == ("ACTIVE", "administrator has approved it.")

    page.goto(f"/studies/{name_of('limits')}?tab=trials")
    trials = api("GET", f"/studies/{name_of('limits')}/trials?page_size=100")["trials"]
    breaking = [one["number"] for one in trials if one["breaks"]]
    assert breaking
    expect(page.get_by_role("row").filter(has_text="breaks a constraint")).to_have_count(len(breaking))
