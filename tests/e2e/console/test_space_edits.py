"""The parameters of a study are edited in the console."""

from __future__ import annotations

import uuid

from playwright.sync_api import Page, expect

from tests.factories.browser import NEEDS_BROWSER, accessibility_faults, choose_action
from tests.factories.console import Rest

pytestmark = NEEDS_BROWSER


def test_parameters_of_a_study_are_fixed_and_added(page: Page, api: Rest) -> None:
    name = f"edited-{uuid.uuid4().hex[:6]}"
    space = [
        {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5},
        {"name": "n", "type": "int", "min": 1, "max": 8, "default": 4},
    ]
    api.study(
        name,
        space={"parameters": space},
        objectives=[{"metric": "value", "goal": "minimize"}],
        algorithm={"name": "random"},
    )
    for n in (4, 4, 7):
        api("POST", f"/studies/{name}/trials", {"params": {"x": 0.1, "n": n}, "metrics": {"value": n}})
    page.goto(f"/studies/{name}")
    choose_action(page, "Parameters")
    dialogue = page.get_by_role("dialog", name=f"Parameters of {name}")
    expect(dialogue.get_by_role("button", name="Save")).to_be_disabled()
    dialogue.get_by_label("n in the search", exact=True).select_option("fixed")
    dialogue.get_by_label("Value of n").fill("9")
    expect(dialogue.get_by_role("group", name="n", exact=True)).to_contain_text("9 is above the maximum 8")
    dialogue.get_by_label("Value of n").fill("4")
    dialogue.get_by_label("Add parameters (YAML)").fill("cache: {type: int, min: 1, max: 64, default: 8}")
    expect(dialogue.get_by_role("status")).to_contain_text("2 of 3 trials are used, 2 of them with cache = 8")
    assert not accessibility_faults(page)
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_be_hidden()
    assert api("GET", f"/studies/{name}")["fixed"] == {"n": 4}
    expect(page.get_by_text("n fixed to 4")).to_be_visible()
    expect(page.get_by_text("1 had another value of n and is left out.")).to_be_visible()
    # Trials from before the edit are shown on all tabs.
    page.goto(f"/studies/{name}?tab=trials")
    expect(page.get_by_role("row").nth(1)).to_contain_text("—")
    page.goto(f"/studies/{name}?tab=analysis")
    expect(page.get_by_role("heading", name=name)).to_be_visible()
