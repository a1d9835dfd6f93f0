"""The data folder of embedded mode: who can read it, and free disk."""

from __future__ import annotations

import shutil

from service.doctor.findings import Deployment, Finding, ok, problem, warning

PRIVATE = ("admin-token", "secret-key", "postgres")
FEW_BYTES = 2 * 1024**3
TOO_FEW_BYTES = 256 * 1024**2


def modes(deployment: Deployment) -> Finding:
    """Check that only the owner can read the secrets and the database."""
    assert deployment.data is not None
    data = deployment.data
    missing = [name for name in PRIVATE if not (data / name).exists()]
    if missing:
        return problem(f"{data} has no {missing[0]}", "restore a backup, or name the right folder with --data-dir")
    open_ = [path for path in (data, *(data / name for name in PRIVATE)) if path.stat().st_mode & 0o077]
    if open_:
        names = " ".join(str(path) for path in open_)
        return problem(f"other users of this machine may open {names}", f"chmod go-rwx {names}")
    return ok(f"only its owner can open {data}")


def disk(deployment: Deployment) -> Finding:
    """Check that the disk of the data folder is not full."""
    free = shutil.disk_usage(deployment.data or ".").free
    text = f"{free / 1024**2:.0f} MiB are free on the disk of {deployment.data}"
    remedy = "delete files, or move the data folder to a larger disk (backup, restore)"
    if free < TOO_FEW_BYTES:
        return problem(text, remedy)
    return warning(text, remedy) if free < FEW_BYTES else ok(text)
