"""Build the documentation site: `python -m docs._ext.build`. Warnings are errors.

python -m docs._ext.build             # build docs/_site
python -m docs._ext.build --changed   # only if a source has changed since the last build
"""

from __future__ import annotations

import argparse
import hashlib
import sys

from docs._ext.pages import ROOT, SITE, sources

WORK = ROOT / ".cache" / "docs"
# A file in the site with the checksum of the sources from which it was built.
BUILT_FROM = SITE / ".built-from"


def checksum() -> str:
    """Return the checksum of everything on which the site depends."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()


def build() -> int:
    """Build the site and return the exit status."""
    from sphinx.cmd.build import build_main

    from docs._ext.staging import BrokenLink, stage

    try:
        stage(WORK / "source")
    except BrokenLink as error:
        print(f"documentation: {error}", file=sys.stderr)
        return 1
    BUILT_FROM.unlink(missing_ok=True)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "2"]
    folders = ["-c", str(ROOT / "docs"), "-d", str(WORK / "doctrees"), str(WORK / "source"), str(SITE)]
    return build_main([*options, "-b", "html", *folders])


def main() -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changed", action="store_true", help="build only if a source has changed")
    now = checksum()
    if parser.parse_args().changed and BUILT_FROM.is_file() and BUILT_FROM.read_text() == now:
        return 0
    status = build()
    if status == 0:
        BUILT_FROM.write_text(now)
    return status


if __name__ == "__main__":
    sys.exit(main())
