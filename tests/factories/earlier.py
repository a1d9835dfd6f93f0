"""An earlier version of Trimtab from the history of this checkout, with its own environment."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.factories.service import lack

ROOT = Path(__file__).resolve().parents[2]
# The last version before matching, leases of ask/tell clients and `tell_many`.
COMMIT = "87e97f50d60d8c602e25a4613153ccc896af21c7"
# A folder with another version that is set up already, such as the one that an installation runs.
FOLDER_VARIABLE = "TRIMTAB_EARLIER_VERSION"


@contextmanager
def earlier_version(folder: Path) -> Iterator[Path]:
    """Check out COMMIT below `folder`, set it up and give its path. Without the history, skip the test (in CI: fail).

    If TRIMTAB_EARLIER_VERSION names a checkout, give that one.
    """
    if given := os.environ.get(FOLDER_VARIABLE):
        yield Path(given)
        return
    if shutil.which("git") is None or _git("cat-file", "-e", f"{COMMIT}^{{commit}}").returncode:
        lack(f"the history of {ROOT} has no commit {COMMIT}: a complete clone with git is needed")
    checkout = folder / "earlier"
    added = _git("worktree", "add", "--detach", str(checkout), COMMIT)
    assert added.returncode == 0, added.stderr
    try:
        # Nothing here opens the console, and its build takes minutes.
        (checkout / "web" / "package.json").unlink()
        done = subprocess.run(
            [str(checkout / "deploy" / "checkout" / "setup.sh")],
            env={key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        yield checkout
    finally:
        _git("worktree", "remove", "--force", str(checkout))


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
