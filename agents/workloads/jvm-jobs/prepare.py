"""Fetch the libraries of the jobs `sql` and `search` from Maven's central repository, into the folder `lib`.

It needs Maven (Debian package maven). Maven checks the sums of what it fetches.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

LIB = Path(__file__).resolve().parent / "lib"
ARTIFACTS = ("com.h2database:h2:2.3.232", "org.apache.lucene:lucene-core:9.12.0")


def main() -> None:
    """Fetch each library."""
    for artifact in ARTIFACTS:
        bench.maven("dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={LIB}")


if __name__ == "__main__":
    main()
