"""Report the live systems of this machine to the service, and take settings back for which it asks."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from trimtab_agent import invocation
from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.credentials import Credentials
from trimtab_agent.errors import CallError, CallRefusedError
from trimtab_agent.journal import LEASE_FOLDER
from trimtab_agent.logger import Logger
from trimtab_agent.redaction import Redactor
from trimtab_agent.runners.base import Json
from trimtab_agent.supervisor import switch
from trimtab_agent.supervisor.shown import NOW

logger = Logger(__name__)

# Seconds between two looks, and between two reports in which nothing has changed.
INTERVAL, LONGEST_INTERVAL = 1.0, 30.0
# Seconds after which a picture is too old: the process that drew it has ended.
FRESH = 5.0
# The most instances that are reported.
MOST_INSTANCES = 100


async def follow(control: ControlPlane, records: Path, credentials: Credentials) -> None:
    """Report the instances in a folder of records, without end: when something has changed, and now and then."""
    sent: Sequence[Mapping[str, Json]] = []
    again = 0.0
    while True:
        found = await asyncio.to_thread(seen, records, credentials)
        if found != sent or (found and time.monotonic() > again):
            try:
                wanted = await control.report_live(found)
            except CallRefusedError as error:
                # A service of an earlier version has no such call.
                logger.info("live systems are not reported", error=error)
                await asyncio.sleep(LONGEST_INTERVAL)
            except CallError:
                pass  # the heartbeat tells that the service is away
            else:
                sent, again = found, time.monotonic() + LONGEST_INTERVAL
                for component, instance, reason in wanted:
                    await asyncio.to_thread(_take_back, switch.Instance.of(records, component, instance), reason)
        await asyncio.sleep(INTERVAL)


def seen(records: Path, credentials: Credentials) -> list[dict[str, Json]]:
    """Return what is known of each instance that was switched here, with the names of the message LiveInstance."""
    if not records.is_dir():
        return []
    found = []
    for path in sorted(records.glob("*.lock"))[:MOST_INSTANCES]:
        # A record that is being replaced, or that a person has damaged, is left out once.
        with suppress(OSError, ValueError, KeyError, TypeError):
            found.append(_instance(switch.Instance(path.with_suffix(".json")), credentials))
    return found


def _instance(instance: switch.Instance, credentials: Credentials) -> dict[str, Json]:
    record, picture = instance.record(), _picture(instance.path)
    component, _, name = instance.path.stem.partition(".")
    kept = record is not None and record.kept
    state, reason = "idle", instance.last
    if instance.stuck:
        state, reason = "stuck", instance.stuck
    elif instance.is_stopped:
        state, reason = "stopped", "somebody has run `trimtab-agent live stop`"
    elif picture and picture["phase"] != "kept":
        state, reason = "running", ""
    elif record is not None:
        state, reason = "kept" if kept else "running", ""
    settings = picture["settings"] if picture else record.candidate if record is not None else {}
    secrets = credentials.secrets() | (invocation.secrets(record.env) if record is not None else set())
    return {
        "component": component if record is None else record.component,
        "instance": name if record is None else record.instance,
        "state": state,
        "lease": unquote(picture["folder"].removeprefix(LEASE_FOLDER)) if picture else "",
        "phase": picture["phase"] if picture else "kept" if kept else "",
        "left": round(max(0.0, picture["until"] - time.time()), 1) if picture and picture["until"] else 0.0,
        "candidate": picture["candidate"] if picture else record is not None,
        "settings": dict(settings),
        # It may quote the output of a command.
        "reason": Redactor(lambda: secrets).text(reason),
        "guards": picture["guards"] if picture else [],
        "looks": picture["looks"] if picture else [],
        "pairs": picture.get("pairs", 0) if picture else 0,
    }


def _picture(record: Path) -> dict[str, Json]:
    """Return what the process that switches an instance shows of it; empty if there is none."""
    path = record.with_suffix(NOW)
    with suppress(OSError, ValueError):
        if time.time() - path.stat().st_mtime < FRESH:
            found: dict[str, Json] = json.loads(path.read_text(encoding="utf-8"))
            return found
    return {}


def _take_back(instance: switch.Instance, reason: str) -> None:
    """Ask the process that guards an instance to put the old settings back."""
    if instance.is_requested(switch.REVERT):
        return
    logger.info("settings are to be taken back", instance=instance.path.stem, reason=reason)
    try:
        instance.request(switch.REVERT, reason)
    except OSError as error:
        logger.error("the request to take settings back cannot be written", instance=instance.path.stem, error=error)
