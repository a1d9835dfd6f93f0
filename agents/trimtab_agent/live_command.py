"""`trimtab-agent live`: look at the live systems of this machine, and take settings back, without the service."""

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trimtab_agent.components.environment import inherited
from trimtab_agent.config import Prometheus
from trimtab_agent.errors import ConfigError
from trimtab_agent.live_plans import live_plan
from trimtab_agent.logger import Logger
from trimtab_agent.supervisor import switch
from trimtab_agent.supervisor.guards import Guards
from trimtab_agent.supervisor.readings import Readings
from trimtab_components.schema import Component
from trimtab_components.terminal import write

logger = Logger(__name__)

# Seconds between two looks at the guards.
LOOK_INTERVAL = 0.2
# Seconds for which guards are watched if nobody says for how long.
LONG_ENOUGH = 1800.0
# Seconds between two attempts to take stuck settings back.
RETRY_INTERVAL = 2.0
EXAMPLES = """\
examples:
  trimtab-agent live status
  trimtab-agent live calibrate /etc/trimtab/components/postgresql-live --seconds 1800
  trimtab-agent live stop            # take all settings back now, and let no trial begin
  trimtab-agent live clear primary   # after you have looked: trials may begin again
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", state: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    live = commands.add_parser(
        "live",
        help="look at live systems, and take settings of trials back",
        description="Look at the live systems of this machine, and take settings of trials back. No action needs the "
        "service.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = live.add_subparsers(dest="action", required=True, metavar="ACTION")
    texts = {
        "status": "print which settings of trials are in force",
        "stop": "end all live trials at once, put the old settings back, and let no trial begin until `clear`",
        "revert": "put the old settings back where a trial has left or kept its own; a trial that runs ends",
        "clear": "let trials begin again after a stop or a failed revert",
    }
    for name, text in texts.items():
        action = actions.add_parser(name, parents=[state], help=text, description=f"{text[0].upper()}{text[1:]}.")
        action.add_argument("instance", nargs="?", metavar="INSTANCE", help="only this instance (default: all)")
        if name == "status":
            action.add_argument("--json", action="store_true", help="print one JSON object with the instances")
    calibrate = actions.add_parser(
        "calibrate",
        parents=[state],
        help="watch the present settings and say how often each guard would have been broken",
        description="Watch the present settings and say how often each guard would have been broken. Nothing is "
        "changed.",
    )
    calibrate.add_argument("component", type=Path, metavar="COMPONENT", help="the component's file or folder")
    calibrate.add_argument("--instance", metavar="NAME", help="the instance (default: the first)")
    calibrate.add_argument(
        "--seconds", type=float, metavar="N", help="how long to watch (default: the component's `calibrate`, or 1800)"
    )
    calibrate.add_argument("--prometheus-url", metavar="URL", help="the server for metrics of the type prometheus")
    calibrate.add_argument("--json", action="store_true", help="print one JSON object with metrics and guards")


def status(records: Path, instance: str | None, *, as_json: bool = False) -> int:
    """Print the state of each instance that trials have switched; return 1 if one needs a person."""
    found = _instances(records, instance)
    if as_json:
        write(json.dumps({"instances": {one.path.stem: _state(one) for one in found}}))
        return 1 if any(one.stuck for one in found) else 0
    for one in found:
        record = one.record()
        if one.stuck:
            text = f"STUCK: {one.stuck}. Put the old settings back by hand, then run `trimtab-agent live clear`"
        elif record is not None:
            what = "are kept, under guards," if record.kept else "are in force"
            since = datetime.fromtimestamp(record.since, UTC).isoformat(timespec="seconds")
            text = f"settings of trial {record.trial} {what} since {since}: {_text(record.candidate)}"
        else:
            last = f"; the last kept ones were taken back: {one.last}" if one.last else ""
            text = one.obstacle or f"no settings of a trial are in force{last}"
        write(f"{one.path.stem}: {text}")
    if not found:
        write("No live system was switched by this agent.")
    return 1 if any(one.stuck for one in found) else 0


def _state(one: switch.Instance) -> dict[str, object]:
    """Return the state of an instance for programs."""
    record = one.record()
    in_force = record and {
        "trial": record.trial,
        "kept": record.kept,
        "since": datetime.fromtimestamp(record.since, UTC).isoformat(timespec="seconds"),
        "values": dict(record.candidate),
    }
    return {"stuck": one.stuck, "in_force": in_force, "obstacle": one.obstacle, "last_taken_back": one.last}


def stop(records: Path, instance: str | None) -> int:
    """End the live trials, put the old settings back, and let no trial begin; return 1 if that has failed."""
    for one in _instances(records, instance):
        # The supervisor of a trial sees it; `revert` does the same where there is none.
        one.stop()
    return revert(records, instance)


def revert(records: Path, instance: str | None) -> int:
    """Put the old settings back where a trial has left its own; return 1 if that has failed."""
    failed = False
    for one in _instances(records, instance):
        before = one.record()
        why = switch.revert_all(records, only=one.path).get(one.path.stem, "")
        failed |= bool(why)
        if why:
            write(f"{one.path.stem}: FAILED: {why}")
        else:
            write(f"{one.path.stem}: {'the old settings are in force' if before else 'nothing was to be done'}")
    return 1 if failed else 0


def clear(records: Path, instance: str | None) -> int:
    """Let trials begin again."""
    for one in _instances(records, instance):
        if not one.take():
            write(f"{one.path.stem}: a trial runs. Run `trimtab-agent live stop` first")
            return 1
        one.clear()
        one.leave()
        write(f"{one.path.stem}: trials may begin again")
    return 0


ACTIONS: Mapping[str, Callable[[Path, str | None], int]] = {
    "status": status,
    "stop": stop,
    "revert": revert,
    "clear": clear,
}


def recover(records: Path) -> None:
    """Put the old settings back that an earlier agent process has left to this one."""
    for name, why in switch.revert_all(records).items():
        if why:
            logger.error("settings of a trial may be in force", instance=name, reason=why)
        else:
            logger.warning("the settings of a trial of an earlier process were taken back", instance=name)


def retry_stuck(records: Path) -> None:
    """Begin to take stuck settings back every few seconds, until this process ends: a server may answer again."""

    def run() -> None:
        while True:
            time.sleep(RETRY_INTERVAL)
            for mark in sorted(records.glob("*.stuck")):
                instance = switch.Instance(mark.with_suffix(".json"))
                if not instance.path.exists() or not instance.take():
                    continue
                try:
                    if instance.retry():
                        logger.warning("the old settings of a stuck instance are in force", instance=mark.stem)
                except (OSError, ValueError, KeyError, TypeError) as error:
                    logger.error("a stuck instance cannot be reverted", instance=mark.stem, reason=str(error))
                finally:
                    instance.leave()

    threading.Thread(target=run, name="stuck", daemon=True).start()


def calibrate(
    component: Component, instance: str | None, wanted: float | None, prometheus: Prometheus, as_json: bool = False
) -> int:
    """Watch the present settings and print how often each guard would have been broken; return 1 if one would.

    Raises:
        ConfigError: the component is not live, or has no such instance.
    """
    live = component.live
    if live is None:
        raise ConfigError(f"component {component.name!r} has no key `live`, so it has no guards")
    name = instance or next(iter(component.applications))
    if name not in component.applications:
        raise ConfigError(f"component {component.name!r} has no instance {name!r}; it has {_names(component)}")
    seconds = wanted or live.calibrate or LONG_ENOUGH
    plan: dict[str, Any] = live_plan(component, live, name, {}, records=Path("/nonexistent"))
    source = Readings(
        plan["readings"],
        plan["folder"],
        inherited(os.environ),
        {"url": prometheus.url, "token_file": prometheus.token_file},
    )
    values: dict[str, dict[float, float]] = {one["name"]: {} for one in plan["readings"]}
    broken: dict[str, list[str]] = {one["name"]: [] for one in plan["guards"]}
    each = {one["name"]: Guards([one]) for one in plan["guards"]}
    # The guards that compare with a control get one after the first tenth of the time.
    begin = time.monotonic()
    has_control = False
    # Standard output is for the result alone if a program reads it.
    write(f"Watching {component.name} on {name} for {seconds:g} s. Nothing is changed.", error=as_json)
    while (passed := time.monotonic() - begin) < seconds:
        for metric, found in values.items():
            latest = source.latest(metric)
            if latest is not None:
                found[latest[0]] = latest[1]
        if not has_control and passed > seconds / 10:
            has_control = True
            for guards in each.values():
                guards.set_control({metric: list(found.values()) for metric, found in values.items()})
        for guard, guards in each.items():
            over = guards.look(source)
            if over is not None:
                broken[guard].append(over.text)
                guards.reset()
        time.sleep(LOOK_INTERVAL)
    source.close()
    if as_json:
        write(json.dumps(_calibrated(seconds, values, broken)))
        return 1 if any(broken.values()) else 0
    for metric, found in values.items():
        ordered = sorted(found.values())
        middle = f"no reading: {source.fault(metric)}"
        if ordered:
            middle = f"median {ordered[len(ordered) // 2]:.6g}, largest {ordered[-1]:.6g}"
        write(f"metric {metric}: {len(ordered)} readings, {middle}")
    for spec in plan["guards"]:
        texts = broken[spec["name"]]
        again = f"{len(texts)} times in {seconds:g} s, last: {texts[-1]}" if texts else "never broken"
        write(f"guard {spec['name']}: {again}")
        if texts and (longest := _longest_beyond(spec, values.get(spec["metric"], {}))):
            write(f"  it was beyond its limit for up to {longest:.0f} s: with `for: {longest + 2:.0f}` it holds")
    if any(broken.values()):
        write("A guard that the present settings break ends every trial: make its limit wider, or its `for` longer.")
    return 1 if any(broken.values()) else 0


def _calibrated(
    seconds: float, values: Mapping[str, Mapping[float, float]], broken: Mapping[str, Sequence[str]]
) -> dict[str, object]:
    """Return what was read, and how often each guard would have been broken."""
    metrics: dict[str, object] = {}
    for metric, found in values.items():
        ordered = sorted(found.values())
        metrics[metric] = {
            "readings": len(ordered),
            "median": ordered[len(ordered) // 2] if ordered else None,
            "largest": ordered[-1] if ordered else None,
        }
    guards = {name: {"broken": len(texts), "last": texts[-1] if texts else None} for name, texts in broken.items()}
    return {"seconds": seconds, "metrics": metrics, "guards": guards}


def _longest_beyond(guard: Mapping[str, Any], read: Mapping[float, float]) -> float:
    """Return for how many seconds in a row the readings of a guard were beyond its limit, at most."""
    ordered = sorted(read.values())
    limit = guard["limit"] * (ordered[len(ordered) // 2] if guard["of_control"] and ordered else 1.0)
    longest, since = 0.0, None
    for at in sorted(read):
        beyond = read[at] > limit if guard["above"] else read[at] < limit
        since = (at if since is None else since) if beyond else None
        longest = max(longest, 0.0 if since is None else at - since)
    return longest


def _instances(records: Path, instance: str | None) -> list[switch.Instance]:
    """Return the instances that were switched, or stopped, here.

    Raises:
        ConfigError: there is none of this name.
    """
    names = {path.with_suffix("") for path in records.glob("*.lock")} if records.is_dir() else set()
    found = [switch.Instance(path.parent / f"{path.name}.json") for path in sorted(names)]
    if instance is None:
        return found
    wanted = [one for one in found if f".{one.path.stem}".endswith(f".{instance}")]
    if not wanted:
        known = ", ".join(one.path.stem for one in found) or "none"
        raise ConfigError(f"no instance {instance!r} was switched by this agent; known: {known}")
    return wanted


def _text(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _names(component: Component) -> str:
    return ", ".join(component.applications)
