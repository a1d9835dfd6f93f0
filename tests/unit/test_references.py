"""Citations and docs/references.md agree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFERENCES = ROOT / "docs" / "references.md"
# A key is the first author's name and the year, such as [robert-2021, section 3.3.1].
_CITATION = re.compile(r"\[([a-z]+(?:-[a-z]+)*-(?:19|20)\d\d[a-z]?)(?:\]|,\s)")
_ENTRY = re.compile(r"^- \*\*([a-z0-9-]+)\*\*: (.+)", re.MULTILINE)
_YEAR = re.compile(r"(19|20)\d\d")
_SUFFIXES = {".py", ".md", ".c", ".h", ".ts", ".tsx", ".yaml", ".lua", ".sh", ".proto", ".toml"}


def test_every_citation_has_an_entry_and_every_entry_is_cited(programs_start: None) -> None:
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    texts = {
        name: (ROOT / name).read_text(errors="replace")
        for name in names
        if Path(name).suffix in _SUFFIXES and (ROOT / name).is_file()
    }
    entries = {key for key, _ in _ENTRIES}
    cited = {
        key: name
        for name, text in texts.items()
        if ROOT / name not in (REFERENCES, Path(__file__))
        for key in _CITATION.findall(text)
    }
    unknown = {key: name for key, name in cited.items() if key not in entries}
    assert not unknown, "these keys have no entry in docs/references.md"
    uncited = sorted(entries - cited.keys())
    assert not uncited, "nothing cites these entries of docs/references.md"


def test_every_entry_has_a_key_with_its_year_and_states_its_use() -> None:
    assert len(_ENTRIES) == len({key for key, _ in _ENTRIES}) > 40
    for key, entry in _ENTRIES:
        assert (found := _YEAR.search(key))
        assert found[0] in entry, key
        assert "Used: " in entry, key


def _entries() -> list[tuple[str, str]]:
    text = REFERENCES.read_text()
    places = list(_ENTRY.finditer(text))
    ends = [place.start() for place in places[1:]] + [len(text)]
    return [(place[1], text[place.start() : end]) for place, end in zip(places, ends, strict=True)]


_ENTRIES = _entries()
