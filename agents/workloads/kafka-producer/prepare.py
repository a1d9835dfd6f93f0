"""Fetch Kafka with its libraries from Maven's central repository, into the folder `lib`: 54 MB.

It needs Maven (Debian package maven). Maven checks the sums of what it fetches.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Fetch the libraries that pom.xml names."""
    folder = f"-DoutputDirectory={HERE / 'lib'}"
    bench.maven("--file", HERE / "pom.xml", "dependency:copy-dependencies", folder, "-DincludeScope=runtime")


if __name__ == "__main__":
    main()
