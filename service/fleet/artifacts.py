"""The files that trials on agents leave behind. The service stores each once with its trial, within limits."""

from __future__ import annotations

import hashlib
import re

from django.db import IntegrityError
from django.db.models import QuerySet

from service.core.errors import Conflict, InvalidInput
from service.core.lifecycle import LeaseState
from service.fleet import agents
from service.fleet.leases import find_lease
from service.fleet.models import Lease
from service.studies.models import Artifact, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.quotas import meter

# Limits for one run of a trial: files with content, files with or without content, and the bytes of one file.
MOST_KEPT = 20
MOST_TOLD = 100
LARGEST_BYTES = 2 * 1024 * 1024
NAME_LENGTH = 255
_LEFT_OUT_LENGTH = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def put(
    principal: Principal,
    *,
    agent_id: str,
    lease: str,
    name: str,
    size: int,
    sha256: str,
    data: bytes,
    left_out: str,
) -> str:
    """Store a file of a settled lease's trial, and return why its content is left out, empty if it is stored.

    A second file of the same name changes nothing. `left_out` says why the agent sends no content.
    Raises InvalidInput, NotFound (`unknown_agent`), Conflict (`lease_lost`, `lease_not_settled`).
    """
    _check(name, size, sha256, data, left_out)
    agent = agents.known(principal, agent_id)
    found = find_lease(principal, agent, lease)
    if found.state == LeaseState.HELD:
        raise Conflict("lease_not_settled", f"Lease {lease} is held. Send the files of a trial after its end.")
    try:
        with access.work(principal):
            return _put(principal, found, name, size, sha256, data, left_out[:_LEFT_OUT_LENGTH])
    except IntegrityError:
        # The study was deleted in the meantime, and find_lease raises the error for that.
        find_lease(principal, agent, lease)
        raise


def _put(principal: Principal, lease: Lease, name: str, size: int, sha256: str, data: bytes, left_out: str) -> str:
    # The lock serialises the files of one trial, and a deletion of the trial waits for it.
    if not access.rows(Trial, principal).filter(pk=lease.trial_id).select_for_update().values_list("pk"):
        raise Conflict("lease_lost", f"The trial of lease {lease.pk} was deleted.")
    stored = _of_run(principal, lease)
    before = stored.filter(name=name).defer("content").first()
    if before is not None:
        return before.left_out
    if stored.count() >= MOST_TOLD:
        return f"more than {MOST_TOLD} files of one run"
    if not left_out and stored.filter(content__isnull=False).count() >= MOST_KEPT:
        left_out = f"more than {MOST_KEPT} files of one run"
    if not left_out and not meter.room_for_log(principal, len(data)):
        left_out = "the tenant has reached its quota for the output of trials"
    access.add(
        principal,
        Artifact(
            trial_id=lease.trial_id,
            source=lease.pk,
            attempt=lease.attempt,
            name=name,
            size=size,
            sha256=sha256,
            content=None if left_out else data,
            left_out=left_out,
        ),
    )
    return left_out


def _of_run(principal: Principal, lease: Lease) -> QuerySet[Artifact]:
    return access.rows(Artifact, principal).filter(trial_id=lease.trial_id, source=lease.pk)


def _check(name: str, size: int, sha256: str, data: bytes, left_out: str) -> None:
    is_path = all(part not in ("", ".", "..") for part in name.split("/"))
    if len(name) > NAME_LENGTH or _CONTROL.search(name) or not is_path:
        raise InvalidInput(
            "name", name[:NAME_LENGTH], f"a path below the work folder, of at most {NAME_LENGTH} characters"
        )
    if len(data) > LARGEST_BYTES:
        raise InvalidInput("data", f"{len(data)} bytes", f"at most {LARGEST_BYTES} bytes")
    if _CONTROL.search(left_out):
        raise InvalidInput("left_out", left_out[:_LEFT_OUT_LENGTH], "a line of text")
    if left_out and data:
        raise InvalidInput("data", f"{len(data)} bytes", "empty data if `left_out` is given")
    if not 0 <= size < 2**63 or (not left_out and size != len(data)):
        raise InvalidInput("size", size, "0 or more" if left_out else f"the size of the data, {len(data)}")
    if sha256 != ("" if left_out else hashlib.sha256(data).hexdigest()):
        raise InvalidInput("sha256", sha256[:64], "the hexadecimal SHA-256 of the data, empty if `left_out` is given")
