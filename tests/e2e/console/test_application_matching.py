"""Application matching in the console: records of real studies, jobs, an explained match, quality and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.factories.agent import RealAgent
from tests.factories.browser import NEEDS_BROWSER, accessibility_faults, build_console, open_page
from tests.factories.console import Rest, furnished
from tests.factories.matched import match_jobs
from tests.factories.service import EmbeddedService

pytestmark = NEEDS_BROWSER

SCRIPT = "#!/bin/sh\n#SBATCH --job-name=allreduce_2 -N 4\n#SBATCH -p main\nsrun ./allreduce --size 4M\n"
JOB = "{user: grace, name: allreduce_2, program: allreduce, command: /opt/mpi/bin/allreduce --size 4M, nodes: 4}"
POLICY = "matching: {mode: apply, users: [grace, 'proj-*'], control_share: 0.1, cluster: hpc1}\n"


# A service of their own, because the tests of other pages count studies and agents.
@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    build_console()
    with EmbeddedService(tmp_path_factory.mktemp("matching")) as service:
        yield service


@pytest.fixture(scope="module")
def api(service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with furnished(service, tmp_path_factory.mktemp("agent")) as rest:
        yield rest


@pytest.fixture(scope="module")
def records(service: EmbeddedService, api: Rest) -> dict[str, str]:
    """The ids of records by study. The jobs of allreduce-1 were faster, the ones of bcast-1 slower."""
    return match_jobs(service, api)


@pytest.fixture(scope="module")
def host(service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAgent]:
    """The agent of a submission host, which also runs trials."""
    folder = tmp_path_factory.mktemp("host")
    components, policy = folder / "components", folder / "policy.yaml"
    components.mkdir()
    (components / "one.yaml").write_text("name: one\napplications: {main: {command: ['true']}}\n")
    policy.write_text(POLICY)
    options = ["--policy", str(policy), "--match-socket", str(folder / "match.sock")]
    token: Path = service.data_dir / "admin-token"
    with RealAgent(folder, service.grpc_address, token, components, slots=1, name="login-1", options=options) as agent:
        yield agent


def tab(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Matching").get_by_role("link", name=name).click()


def test_records_are_found_and_one_is_withdrawn(page: Page, records: dict[str, str]) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Matching").click()
    page.get_by_label("Search records").fill("allreduce")
    rows = page.locator("tbody").get_by_role("row")
    expect(rows).to_have_count(4)
    page.get_by_role("button", name="Study").click()
    expect(page.locator("td[data-label=Study]")).to_have_text([f"allreduce-{number}" for number in range(1, 5)])
    expect(page).to_have_url(re.compile("sort=study"))
    first = rows.first
    expect(first).to_contain_text("8 jobs with the settings, 8 controls")
    expect(first).to_contain_text("% faster (95 %: ")
    expect(first).to_contain_text("ada, allreduce, 2 nodes")
    page.get_by_label("Search records").fill("")
    page.get_by_role("radio", name="Withdrawn").click()
    expect(rows.filter(has_text="bcast-1")).to_contain_text("its jobs were slower")
    assert accessibility_faults(page) == []
    page.get_by_role("radio", name="Active").click()
    expect(rows.filter(has_text="bcast-1")).to_have_count(0)

    page.goto(f"/matching/records/{records['bcast-4']}")
    expect(page.get_by_role("region", name="Tuned job")).to_contain_text("/opt/mpi/bin/bcast --size 4M")
    page.get_by_role("button", name="Withdraw").click()
    dialogue = page.get_by_role("dialog", name=f"Withdraw record {records['bcast-4']}?")
    dialogue.get_by_label("Reason").fill("x" * 501)
    dialogue.get_by_role("button", name="Withdraw record").click()
    expect(dialogue.get_by_label("Reason")).to_have_attribute("aria-invalid", "true")
    dialogue.get_by_label("Reason").fill("The switch is new.")
    dialogue.get_by_role("button", name="Withdraw record").click()
    expect(dialogue).to_be_hidden()
    expect(page.get_by_text("The switch is new.")).to_be_visible()
    page.get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore record").click()
    expect(page.get_by_text("Jobs of this application get these settings since")).to_be_visible()


@pytest.mark.slow("the list of records shows the same rows in a browser")
def test_a_record_compares_its_jobs_with_the_controls(page: Page, records: dict[str, str]) -> None:
    page.goto(f"/matching/records/{records['allreduce-1']}")
    fared = page.get_by_role("region", name="How its jobs fared")
    expect(fared.get_by_role("img", name="Run times of 8 jobs with the settings and 8 controls")).to_be_visible()
    expect(fared.get_by_role("img", name="Difference of the run time: ")).to_be_visible()
    expect(page.get_by_role("region", name="Settings that it applies")).to_contain_text("threads14")
    assert accessibility_faults(page) == []
    fared.get_by_role("link", name="Show its jobs").click()
    rows = page.locator("tbody").get_by_role("row")
    expect(rows).to_have_count(16)
    page.get_by_role("radio", name="Control").click()
    expect(rows).to_have_count(8)
    expect(rows.first).to_contain_text("#42")
    expect(page.get_by_text("% faster (95 %: ")).to_be_visible()
    page.get_by_role("radio", name="Dry run").click()
    expect(page.get_by_text("No matching jobs")).to_be_visible()
    page.get_by_role("button", name="Show all jobs").click()
    expect(rows.filter(has_text="dry run")).to_have_count(1)
    assert accessibility_faults(page) == []


@pytest.mark.slow("the list of records shows the same rows in a browser")
def test_a_job_is_explained_part_by_part(page: Page, records: dict[str, str], host: RealAgent) -> None:
    page.goto("/matching?tab=explain")
    text = page.get_by_label("Command, batch script")
    text.fill(SCRIPT)
    expect(page.get_by_label("Job name")).to_have_value("allreduce_2")
    expect(page.get_by_label("Partition")).to_have_value("main")
    page.get_by_label("Nodes", exact=True).fill("0")
    page.get_by_role("button", name="Explain match").click()
    # The service refuses the field, and the message stands next to it.
    expect(page.get_by_label("Nodes", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("job.nodes: 0")).to_be_visible()
    page.get_by_label("Nodes", exact=True).fill("4")
    page.get_by_label("User", exact=True).fill("eve")
    page.get_by_role("button", name="Explain match").click()
    candidate = page.get_by_role("region", name="mpi-collectives / allreduce")
    expect(candidate).to_contain_text("No match: nothing would be applied.")
    expect(candidate).to_contain_text("is below the threshold 0.77")
    expect(candidate).to_contain_text("The largest differences: User")

    text.fill("queue: long")
    expect(page.get_by_text("queue is no field of a job.")).to_be_visible()
    expect(candidate).to_have_count(0)
    text.fill(JOB)
    page.get_by_role("button", name="Explain match").press("Enter")
    expect(candidate).to_contain_text("reaches the threshold 0.77")
    expect(candidate).to_contain_text("login-1: the rules allow the settings. A share of 0.1")
    expect(
        candidate.get_by_role("img", name=re.compile(r"Parts of the score 0\.\d{3}; the threshold is 0\.77"))
    ).to_be_visible()
    candidate.get_by_text("Show values").click()
    parts = candidate.get_by_role("row")
    expect(parts.filter(has_text="Job name")).to_contain_text("1.0000.1670.167")
    assert accessibility_faults(page) == []
    page.get_by_label("User", exact=True).fill("eve")
    page.get_by_label("Program").fill("allreduce")
    candidate.get_by_role("link", name="Record").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Record {records['allreduce-2']}")


@pytest.mark.slow("the list of records shows the same rows in a browser")
def test_quality_teaches_weights_that_are_set(
    page: Page, browser: Browser, service: EmbeddedService, api: Rest, records: dict[str, str], host: RealAgent
) -> None:
    api("PATCH", f"/matching/records/{records['bcast-1']}", {"state": "ACTIVE"})
    page.goto("/matching?tab=quality")
    expect(page.get_by_role("img", name="Precision and recall over thresholds; 100 % and ")).to_be_visible()
    # Four records of each of two applications have six pairs each.
    expect(page.get_by_text("Labelled pairs12")).to_be_visible()
    learned = api("GET", "/matching/quality?learn=true")["learned"]
    weights = page.get_by_role("region", name="Weights")
    expect(weights.get_by_role("row", name="Threshold")).to_contain_text(f"0.770.77{learned['threshold']}")
    assert accessibility_faults(page) == []
    weights.get_by_role("link", name="Change weights").click()

    rules = page.get_by_role("region", name="Rules of submission hosts")
    expect(rules.get_by_role("row").filter(has_text="login-1")).to_contain_text("grace, proj-*")
    expect(rules).to_contain_text("Only the administrator of a machine changes its rules")
    page.get_by_label("Another cluster").fill("hpc1")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("The cluster has no settings of its own")).to_be_visible()
    page.get_by_label("Threshold", exact=True).fill("1.5")
    expect(page.get_by_text("Enter a number from 0 to 1.")).to_be_visible()
    expect(page.get_by_role("button", name="Save settings")).to_be_disabled()
    page.get_by_label("Threshold", exact=True).fill("0.8")
    page.get_by_label("User", exact=True).fill("1000001")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("a number from 0 to 1,000,000")).to_be_visible()
    expect(page.get_by_label("User", exact=True)).to_have_attribute("aria-invalid", "true")
    assert accessibility_faults(page) == []
    page.get_by_role("button", name="Fill in learned values").click()
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("These settings were set by an administrator.")).to_be_visible()
    stored = api("GET", "/matching/settings?cluster=hpc1")
    assert (stored["threshold"], stored["is_own"]) == (learned["threshold"], True)
    assert api("GET", "/matching/settings")["is_own"] is False

    looking = api("POST", "/tokens", {"name": "looks", "scopes": ["read"], "study": None, "days": 1})
    headers = {"Authorization": f"Bearer {looking['secret']}"}
    context = browser.new_context(base_url=service.http_url, extra_http_headers=headers)
    viewer = open_page(context)
    viewer.goto("/matching?tab=settings&cluster=hpc1")
    expect(viewer.get_by_text("Administrators change these settings.")).to_be_visible()
    expect(viewer.get_by_role("button", name="Save settings")).to_have_count(0)
    viewer.goto(f"/matching/records/{records['bcast-2']}")
    expect(viewer.get_by_role("heading", level=1)).to_be_visible()
    expect(viewer.get_by_role("button", name="Withdraw")).to_have_count(0)
    context.close()


@pytest.mark.slow("the list of records shows the same rows in a browser")
def test_a_study_says_what_became_of_its_record(page: Page, api: Rest, records: dict[str, str]) -> None:
    page.goto("/studies/allreduce-1")
    note = page.get_by_role("region", name="Application matching")
    expect(note).to_contain_text("Jobs of this application get these settings since")
    expect(note).to_contain_text("% faster (95 %: ")
    api("PATCH", f"/matching/records/{records['bcast-3']}", {"state": "WITHDRAWN", "reason": "It is old."})
    page.goto("/studies/bcast-3")
    expect(note).to_contain_text("Withdrawn on")
    expect(note).to_contain_text("It is old.")
    assert accessibility_faults(page) == []
    note.get_by_role("link", name="Record").click()
    page.get_by_role("link", name="Audit trail").click()
    entries = page.locator("tbody").get_by_role("row")
    expect(entries.filter(has_text="record.withdraw").first).to_be_visible()
    page.goto("/studies/io-path-1")
    expect(page.get_by_role("region", name="Gain over the default")).to_be_visible()
    expect(note).to_have_count(0)


def test_the_page_fits_a_phone(browser: Browser, service: EmbeddedService, records: dict[str, str]) -> None:
    headers = {"Authorization": f"Bearer {service.token}"}
    context = browser.new_context(
        base_url=service.http_url, extra_http_headers=headers, viewport={"width": 390, "height": 844}
    )
    page = open_page(context)
    for path in ("", "?tab=explain", "?tab=jobs", "?tab=quality", "?tab=settings", f"/records/{records['bcast-1']}"):
        page.goto(f"/matching{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        bar = page.get_by_role("navigation", name="Main").get_by_role("link", name="Administration").bounding_box()
        assert bar is not None
        assert bar["x"] + bar["width"] <= 390
    context.close()
