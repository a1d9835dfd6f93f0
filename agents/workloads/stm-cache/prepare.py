"""Fetch the manual pages that the server shows: Debian's package manpages, unpacked into the folder `source`.

apt checks the package's signature. Nothing is installed, and no privileges are needed.
"""

import gzip
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent))

from debian_sources import PrepareError, need_programs, run  # noqa: E402  # in the parent folder

SOURCE = FOLDER / "source"
NEEDED = "apt and dpkg (this workload needs Debian or Ubuntu)"
LEAST = 100


def main() -> int:
    """Run the command line; return 1 if something is missing or fails."""
    try:
        if not SOURCE.is_dir():
            fetch()
        print(f"prepared: {SOURCE}: {len(list(SOURCE.glob('*.gz')))} manual pages")
    except PrepareError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def fetch() -> None:
    """Make `SOURCE`. Raise PrepareError."""
    need_programs(("apt-get", "dpkg-deb"), NEEDED)
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix=".part") as name:
        place = Path(name)
        run(["apt-get", "-qq", "-o", "APT::Sandbox::User=", "download", "manpages"], place, "apt-get download")
        [package] = place.glob("*.deb")
        run(["dpkg-deb", "--extract", str(package), "all"], place, "dpkg-deb")
        made = place / "source"
        made.mkdir()
        for page in sorted(place.glob("all/usr/share/man/man*/*.gz")):
            if not page.is_symlink() and not is_reference(page):
                page.rename(made / page.name)
        found = len(list(made.iterdir()))
        if found < LEAST:
            raise PrepareError(f"{package.name} has {found} manual pages only; {LEAST} or more are expected")
        made.rename(SOURCE)


def is_reference(page: Path) -> bool:
    """Return whether a manual page only names another one."""
    with gzip.open(page, "rb") as file:
        return file.read(4) == b".so "


if __name__ == "__main__":
    sys.exit(main())
