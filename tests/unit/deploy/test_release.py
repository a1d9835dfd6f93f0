"""The parts of a release that do not build anything."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from deploy.release.release import ReleaseError, check_tag, section, write_checksums

CHANGELOG = """
# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- A tool.

## [0.1.0] - 2026-11-01

- The first.
"""


def test_notes_are_the_section_of_the_version_alone() -> None:
    assert section(CHANGELOG, "0.2.0") == "### Added\n\n- A tool.\n"
    assert section(CHANGELOG, "0.1.0") == "- The first.\n"


@pytest.mark.parametrize("version", ["0.3.0", "0.2", "0x2.0", "Unreleased"])
def test_a_missing_or_empty_section_is_an_error(version: str) -> None:
    with pytest.raises(ReleaseError, match=r"has no section \["):
        section(CHANGELOG, version)


def test_the_tag_must_name_the_version() -> None:
    check_tag("v0.2.0", "0.2.0")
    check_tag("", "0.2.0")
    with pytest.raises(ReleaseError, match=r"the tag is v0\.3\.0, but .* version 0\.2\.0"):
        check_tag("v0.3.0", "0.2.0")


def test_checksums_are_readable_for_sha256sum_and_leave_other_versions_out(
    tmp_path: Path, programs_start: None
) -> None:
    (tmp_path / "trimtab-0.2.0.whl").write_bytes(b"wheel")
    (tmp_path / "trimtab-0.1.0.whl").write_bytes(b"old")
    assert write_checksums(tmp_path, "0.2.0") == ["trimtab-0.2.0.whl", "SHA256SUMS"]
    digest = hashlib.sha256(b"wheel").hexdigest()
    assert (tmp_path / "SHA256SUMS").read_text() == f"{digest}  trimtab-0.2.0.whl\n"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)
