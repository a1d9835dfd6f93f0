"""Tokens, quota, audit trail and tenants in the console."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from tests.factories.browser import NEEDS_BROWSER
from tests.factories.service import EmbeddedService

pytestmark = NEEDS_BROWSER


def test_a_token_is_shown_once_and_can_be_revoked(page: Page, browser: Browser, service: EmbeddedService) -> None:
    page.goto("/administration")
    page.get_by_role("button", name="New token").click()
    dialogue = page.get_by_role("dialog", name="New API token")
    dialogue.get_by_label("Name").fill("dashboard")
    dialogue.get_by_label("tune").uncheck()
    dialogue.get_by_label("Limit to study").fill("never-was")
    dialogue.get_by_role("button", name="Create token").click()
    expect(dialogue).to_contain_text("There is no study 'never-was'")
    dialogue.get_by_label("Limit to study").fill("")
    # Twice at once makes one.
    dialogue.get_by_role("button", name="Create token").dblclick()
    secret = dialogue.locator("pre").inner_text()
    dialogue.get_by_role("button", name="Done").click()
    line = page.get_by_role("row").filter(has_text="dashboard")
    expect(line).to_have_count(1)
    expect(line).to_contain_text("read")
    assert secret not in page.content()
    condition = page.get_by_label("Condition on a column")
    condition.fill("permissions ~ ADMIN")
    page.keyboard.press("Enter")
    expect(line).to_be_hidden()
    page.reload()
    expect(page.get_by_text("0 rows meet the filter.")).to_be_visible()
    page.get_by_role("button", name="Remove the condition permissions ~ ADMIN").click()
    condition.fill("permission ~ read")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Did you mean “permissions”?")
    expect(condition).to_have_value("permission ~ read")
    condition.fill("")
    line.get_by_role("button", name="Revoke dashboard").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(line).to_be_hidden()


def test_an_administrator_sees_quota_audit_and_tenants(page: Page) -> None:
    page.goto("/administration?section=audit")
    entries = page.locator("tbody").get_by_role("row")
    expect(entries.nth(10)).to_be_visible()
    page.get_by_label("Action", exact=True).fill("study.update_state")
    expect(entries.filter(has_not_text="study.update_state")).to_have_count(0)
    expect(entries.filter(has_text="study/out-of-disk")).to_have_count(1)
    page.get_by_label("To date").fill("2020-01-01")
    expect(page.get_by_text("No matching entries")).to_be_visible()
    page.get_by_label("To date").fill("")
    page.get_by_label("From date").fill("2020-01-01")
    expect(entries.filter(has_text="study/out-of-disk")).to_have_count(1)
    page.get_by_label("Condition on a column").fill("target != study/out-of-disk")
    page.keyboard.press("Enter")
    # Other tests on the same server may have changed states of their studies.
    expect(entries.filter(has_text="study/out-of-disk")).to_have_count(0)
    page.get_by_label("Condition on a column").fill("target = study/no-such-study")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No matching entries")).to_be_visible()
    page.get_by_role("radio", name="Quota").click()
    expect(page.get_by_text("Stored trials")).to_be_visible()
    page.get_by_role("radio", name="Members").click()
    expect(page.get_by_text("No members yet")).to_be_visible()
    page.get_by_role("radio", name="Tenants").click()
    page.get_by_label("Short name of the new tenant").fill("no spaces")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("slug: 'no spaces'")).to_be_visible()
    page.get_by_label("Short name of the new tenant").fill("acme")
    # Twice before the page can show that it is at work.
    page.get_by_role("button", name="Add").evaluate("button => { button.click(); button.click(); }")
    expect(page.get_by_label("Short name of the new tenant")).to_have_value("")
    expect(page.get_by_text("There is a tenant")).to_have_count(0)
    line = page.get_by_role("row").filter(has_text="acme")
    line.get_by_role("button", name="Disable acme").click()
    expect(line).to_contain_text("disabled")
