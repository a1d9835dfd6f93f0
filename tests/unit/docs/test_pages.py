"""The sources of the documentation site: links, and the parts that are generated from the code."""

from pathlib import Path

import pytest

from docs._ext import pages, staging
from docs._ext.generated import errors, settings
from docs._ext.staging import BrokenLink, Page
from tests.screens import PAGES as SCREENS
from trimtab_components import definition, live_definition, metric_definition, parameter_definition

ROOT = pages.ROOT


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository in place of this one."""
    monkeypatch.setattr(staging, "ROOT", tmp_path)
    for name in ("docs/how-to/run.md", "docs/README.md", "agents/docs/file.md", "agents/code.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# Title\n")
    return tmp_path


PAGES = {"docs/how-to/run.md": "how-to/run", "docs/README.md": "index", "agents/docs/file.md": "reference/file"}


@pytest.mark.parametrize(
    ("written", "staged"),
    [
        ("[file](../../agents/docs/file.md#part)", "[file](../reference/file.md#part)"),
        ("[all](../README.md)", "[all](../index.md)"),
        ("[all pages](../)", "[all pages](../index.md)"),
        ("[the\nfile](../../agents/docs/file.md)", "[the\nfile](../reference/file.md)"),
        ("[code.py](../../agents/code.py)", "`agents/code.py`"),
        ("[the code](../../agents/code.py)", "the code (`agents/code.py`)"),
        ("[below](#part), [elsewhere](https://example.org/a)", "[below](#part), [elsewhere](https://example.org/a)"),
        ("`[no link](nowhere.md)`", "`[no link](nowhere.md)`"),
        ("```python\nx = [a](nowhere.md)\n```", "```python\nx = [a](nowhere.md)\n```"),
    ],
)
def test_a_link_leads_to_the_page_of_the_site(repository: Path, written: str, staged: str) -> None:
    (repository / "docs/how-to/run.md").write_text(written)
    assert Page("docs/how-to/run.md", PAGES).content() == staged


def test_a_link_to_a_missing_file_is_an_error(repository: Path) -> None:
    (repository / "docs/how-to/run.md").write_text("[gone](../gone.md)")
    with pytest.raises(BrokenLink, match=r"docs/how-to/run\.md: the link to '\.\./gone\.md' leads to 'docs/gone\.md'"):
        Page("docs/how-to/run.md", PAGES).content()


def test_a_part_that_nothing_generates_is_an_error(repository: Path) -> None:
    (repository / "docs/how-to/run.md").write_text("<!-- generated: weather -->\n")
    with pytest.raises(BrokenLink, match=r"no generator is named 'weather'\. Use one of study-keys, algorithms"):
        Page("docs/how-to/run.md", PAGES).content()


def test_a_page_shows_the_console_where_pictures_were_made(repository: Path) -> None:
    page = repository / "docs/how-to/run.md"
    page.write_text("Before\n\n<!-- picture: home: The first page -->\n\nAfter\n")
    assert Page("docs/how-to/run.md", PAGES).content() == "Before\n\n\n\nAfter\n"
    (repository / "screens").mkdir()
    for scheme in ("light", "dark"):
        (repository / f"screens/home-wide-{scheme}.png").touch()
    shown = Page("docs/how-to/run.md", PAGES)
    assert ":::{image} ../screens/home-wide-dark.png\n:alt: The first page\n:class: only-dark\n:::" in shown.content()
    assert shown.files == ["screens/home-wide-light.png", "screens/home-wide-dark.png"]


def test_each_picture_of_a_page_is_made() -> None:
    wanted = {name for path in pages.site_pages() for name, _ in staging.PICTURE.findall((ROOT / path).read_text())}
    assert len(wanted) > 5
    assert wanted <= {*SCREENS, "matching-explained"}


def test_the_navigation_follows_the_list_of_pages(repository: Path) -> None:
    (repository / "docs/README.md").write_text("# Docs\n\n## How-to\n\n[run](how-to/run.md), [r](how-to/run.md#x)\n")
    text = Page("docs/README.md", PAGES).content()
    assert text.endswith("```{toctree}\n:hidden:\n:caption: How-to\n\nhow-to/run\n```\n")


def test_the_list_of_errors_has_every_kind_of_code() -> None:
    found = errors.codes()
    # literal, from a variable, from a constant, composed, the default
    for code in ("study_not_found", "wrong_audience", "parameter_in_use", "too_many_calls", "invalid_argument"):
        assert code in found, code
    assert found["message_too_large"].kinds == {"ResourceExhausted"}
    assert len(found) > 100
    assert all(code.isidentifier() for code in found)


def test_every_setting_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = settings.table()
    assert "| `TRIMTAB_HTTP_BODY_SECONDS` | `60` | The time in which the body of a REST request must arrive. |" in table
    for name in settings.TITLES:
        (tmp_path / name).write_text("")
    (tmp_path / "auth.py").write_text('import os\n\nNEW = os.environ.get("TRIMTAB_NEW", "")\n')
    monkeypatch.setattr(settings, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="no comment explains TRIMTAB_NEW"):
        settings.table()


def test_the_reference_has_every_key_of_a_component_file() -> None:
    text = (ROOT / "docs/reference/component-keys.md").read_text()
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    expected = {
        "The file": definition.FILE_KEYS,
        "A parameter": (
            *definition.PARAMETER_KEYS,
            *definition.RANGE_KEYS,
            "values",
            *parameter_definition.VARIABLE_KEYS,
        ),
        "An application": definition.APPLICATION_KEYS,
        "A metric": {key for keys in metric_definition.METRIC_KEYS.values() for key in keys},
        "Parts of the file": (
            *(f"parameters_from.{key}" for key in definition.GENERATOR_KEYS),
            *(f"build.{key}" for key in definition.BUILD_KEYS),
            *(f"templates.{key}" for key in definition.TEMPLATE_KEYS),
            *(f"settings.{key}" for key in definition.SETTINGS_KEYS),
            *(f"scheduler.{key}" for key in definition.SCHEDULER_KEYS),
            *(f"exit_codes.{key}" for key in definition.EXIT_KEYS),
        ),
        "A live system": (
            *(f"live.{key}" for key in live_definition.KEYS),
            *(key for keys in live_definition.READING_KEYS.values() for key in keys if key != "url"),
            *live_definition.GUARD_KEYS,
        ),
    }
    for title, keys in expected.items():
        words = set(sections[title].replace("{", " ").replace("}", " ").replace("`", " ").replace(",", " ").split())
        assert set(keys) <= words, (title, set(keys) - words)
