"""Complete a release in a folder with wheels: notes, lists of contents (SBOM), the documentation and checksums.

    python deploy/release/release.py dist                 # TAG or the tag of the commit names the version
    python deploy/release/release.py dist --tag v0.1.0

A tag must be `v` and the version in pyproject.toml, and CHANGELOG.md must have a section of this version. Without a tag
the files are a rehearsal, whose notes are the section "Unreleased". `make release` builds the wheels and runs this.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("trimtab", "trimtab-components", "trimtab-agent", "trimtab-service")
SITE = ROOT / "docs" / "_site"
CHECKSUMS = "SHA256SUMS"


class ReleaseError(Exception):
    """The release cannot be made; the message says why and what to do."""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with the wheels")
    parser.add_argument("--tag", default=os.environ.get("TAG") or tag_of_commit(), help="tag of the release")
    options = parser.parse_args()
    try:
        release(options.folder, options.tag)
    except ReleaseError as error:
        sys.exit(f"release: {error}")


def release(folder: Path, tag: str) -> None:
    """Write all files of the release next to the wheels in `folder`. Raises ReleaseError."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    check_tag(tag, version)
    notes = section((ROOT / "CHANGELOG.md").read_text(), version if tag else "Unreleased")
    wheels = [folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for name in PACKAGES]
    missing = [wheel.name for wheel in wheels if not wheel.is_file()]
    if missing:
        raise ReleaseError(f"{folder} has no {', '.join(missing)}. Run `make wheels` first.")
    (folder / f"NOTES-{version}.md").write_text(notes)
    list_contents(folder, version)
    if (SITE / "index.html").is_file():
        with tarfile.open(folder / f"trimtab-docs-{version}.tar.gz", "w:gz") as archive:
            archive.add(SITE, f"trimtab-docs-{version}")
    written = write_checksums(folder, version)
    print(f"release: {len(written)} files of version {version} in {folder}" + ("" if tag else " (a rehearsal: no tag)"))


def tag_of_commit() -> str:
    """Return the tag of the checked-out commit that begins with `v`, or an empty text."""
    command = ["git", "describe", "--exact-match", "--tags", "--match", "v*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def check_tag(tag: str, version: str) -> None:
    """Raise ReleaseError if there is a tag and it is not the one of `version`."""
    if tag and tag != f"v{version}":
        raise ReleaseError(
            f"the tag is {tag}, but pyproject.toml has the version {version}."
            f" Change the version, or use the tag v{version}."
        )


def section(changelog: str, version: str) -> str:
    """Return the text below the heading of `version` in a changelog. Raises ReleaseError if there is none."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ReleaseError(f"CHANGELOG.md has no section [{version}]. Rename [Unreleased], and add the date.")
    return found[1].strip() + "\n"


def list_contents(folder: Path, version: str) -> None:
    """Write a CycloneDX list of the locked packages below each distribution, and of the console's."""
    for package in PACKAGES:
        target = folder / f"{package}-{version}.cdx.json"
        extras = ["--extra", "tracing", "--extra", "tpe"] if package == "trimtab-service" else []
        options = ["--quiet", "--frozen", "--no-default-groups", "--package", package, *extras]
        target.write_text(_output(_uv(), "export", "--format", "cyclonedx1.5", *options))
    npm = ["npm", "sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"]
    (folder / f"trimtab-console-{version}.cdx.json").write_text(_output(*npm, folder=ROOT / "web"))


def write_checksums(folder: Path, version: str) -> list[str]:
    """Write the SHA-256 of each file of the version as `sha256sum --check` reads them; return their names."""
    names = sorted(path.name for path in folder.iterdir() if f"-{version}" in path.name)
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / CHECKSUMS).write_text("".join(lines))
    return [*names, CHECKSUMS]


def _uv() -> str:
    return shutil.which("uv") or str(ROOT / ".cache/uv/bin/uv")


def _output(*command: str, folder: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"{command[0]} failed:\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
