"""From a component and the plan of a live study to what the supervisor of a live trial needs to know."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trimtab_agent.supervisor.switch import Instance
from trimtab_components.errors import NotInComponentError, UnsuitableValueError
from trimtab_components.live import MEMORY_USED, Command, Guard, Live
from trimtab_components.placeholders import render_argument
from trimtab_components.schema import Component, Configuration

# How many instances a design needs.
DESIGNS = {"switchback": 1, "crossover": 2, "canary": 2}
# The steps of a roll-out, after the trial of a candidate.
STEPS = ("", "stage", "watch")
# Seconds: a longer block would outlive the credit of a lease.
LONGEST_BLOCK = 24 * 3600.0
MOST_PAIRS = 1000


def live_plan(
    component: Component,
    live: Live,
    instance: str,
    values: Configuration,
    *,
    records: Path,
    plan: Mapping[str, Any] | None = None,
) -> dict[str, object]:
    """Return what the supervisor of a live trial needs to know of the component, and of the plan if there is one.

    Raises:
        UnsuitableValueError: a forbidden parameter has another value than its default.
        NotInComponentError: the plan does not suit the component.
    """
    for name in live.forbidden:
        default = component.parameters[name].default
        if name in values and values[name] != default:
            raise UnsuitableValueError(
                f"{name} is {values[name]!r}, but a live trial must keep its default {default!r}"
            )
    guards = [asdict(one) for one in live.guards.values()]
    peers: list[str] = []
    if plan is not None:
        _check(component, live, plan)
        guards = [asdict(one) for one in _stricter(live, plan["guards"])]
        instance, *peers = plan["places"] or (instance, *_peers(component, instance, plan["design"]))
    first, *others = (_instance(component, live, name, guards, records) for name in (instance, *peers))
    kept = [] if plan is None else [str(Instance.of(records, component.name, one).path) for one in plan["in_force"]]
    return {**first, "peers": others, "in_force": kept, "plan": None if plan is None else dict(plan)}


def _instance(
    component: Component, live: Live, instance: str, guards: Sequence[Mapping[str, object]], records: Path
) -> dict[str, object]:
    places = {"instance": instance, "component": str(component.folder)}

    def rendered(command: Command) -> dict[str, object]:
        return {"argv": [render_argument(item, places) for item in command.argv], "timeout": command.timeout}

    return {
        "record": str(Instance.of(records, component.name, instance).path),
        "component": component.name,
        "instance": instance,
        "folder": str(component.folder),
        "apply": rendered(live.apply),
        "revert": rendered(live.revert),
        "verify": rendered(live.verify),
        "fallback": None if live.fallback is None else rendered(live.fallback),
        "keep": None if live.keep is None else rendered(live.keep),
        "readings": [
            {
                **asdict(one),
                "command": [render_argument(item, places) for item in one.command],
                "file": render_argument(one.file, places),
                "query": one.query.replace("{instance}", instance),
            }
            for one in live.readings.values()
        ],
        "guards": guards,
        "warm_up": live.warm_up,
        "block": live.block,
        "away": live.away,
        "calibrate": live.calibrate,
    }


def _peers(component: Component, instance: str, design: str) -> list[str]:
    """Return the other instances of a trial: the next one for a crossover, all for a canary."""
    names = list(component.applications)
    place = names.index(instance)
    others = [*names[place + 1 :], *names[:place]]
    if len(names) < DESIGNS[design]:
        raise NotInComponentError(
            f"the design {design!r} of the study needs {DESIGNS[design]} instances, and component {component.name!r}"
            f" has {len(names)} ({', '.join(names)}). Use design: switchback, or add instances to the component file"
        )
    return {"switchback": [], "crossover": others[:1], "canary": others}[design]


def _check(component: Component, live: Live, plan: Mapping[str, Any]) -> None:
    def refuse(key: str, value: object, allowed: str) -> NotInComponentError:
        return NotInComponentError(
            f"live.{key} of the study is {value!r}. Component {component.name!r} allows {allowed}"
        )

    if plan["design"] not in DESIGNS:
        raise refuse("design", plan["design"], ", ".join(DESIGNS))
    if plan["step"] not in STEPS:
        raise refuse("step", plan["step"], ", ".join(filter(None, STEPS)))
    for name in (*plan["places"], *plan["in_force"]):
        if name not in component.applications:
            raise refuse("instances", name, f"its instances: {', '.join(component.applications)}")
    known = ", ".join(live.readings)
    if plan["objective"] not in live.readings:
        raise refuse("objective", plan["objective"], f"one of its metrics: {known}")
    for key in ("warm_up", "block"):
        if not 0 <= plan[key] <= LONGEST_BLOCK:
            raise refuse(key, plan[key], f"0 (its own) to {LONGEST_BLOCK:g} seconds")
    if not 1 <= plan["most_pairs"] <= MOST_PAIRS:
        raise refuse("pairs.most", plan["most_pairs"], f"1 to {MOST_PAIRS}")
    if not 0 <= plan["min_gain"] < 1:
        raise refuse("min_gain", plan["min_gain"], "0 to less than 1")
    if not plan["seed"]:
        raise refuse("seed", "", "a seed for the order of the pairs")
    for budget in plan["budgets"]:
        for key in ("slow", "of"):
            if budget[key] not in live.readings:
                raise refuse(f"budget.{budget['name']}.{key}", budget[key], f"one of its metrics: {known}")


def _stricter(live: Live, wanted: Sequence[Mapping[str, Any]]) -> list[Guard]:
    """Return the component's guards with those of the study, which may be stricter and never looser.

    Raises:
        NotInComponentError: a guard of the study is looser, or its metric is not known.
    """
    found = dict(live.guards)
    for one in wanted:
        key = next((key for key in ("above", "below", "above_control") if one.get(key) is not None), None)
        name, own = one["name"], live.guards.get(one["name"])
        if one["metric"] not in (*live.readings, MEMORY_USED):
            known = ", ".join([*live.readings, MEMORY_USED])
            raise NotInComponentError(f"guard {name!r} of the study: metric {one['metric']!r} is not one of {known}")
        if key is None or (key == "above_control" and one[key] <= 1):
            text = f"guard {name!r} of the study: it needs a limit: above, below, or above_control above 1"
            raise NotInComponentError(text)
        guard = Guard(name, one["metric"], one[key], key != "below", key == "above_control", one["for_seconds"])
        if own is not None and (why := _looser(guard, own)):
            raise NotInComponentError(
                f"guard {name!r} of the study is looser than the component's: {why}. A study may only be stricter"
            )
        found[name] = guard
    return list(found.values())


def _looser(guard: Guard, own: Guard) -> str:
    """Return why a guard is looser than the component's; "" if it is not."""
    if guard.metric != own.metric:
        return f"its metric is {guard.metric}, and the component guards {own.metric}"
    if (guard.above, guard.of_control) != (own.above, own.of_control):
        return f"its limit is {_kind(guard)} {guard.limit:g}, and the component's is {_kind(own)} {own.limit:g}"
    if guard.limit > own.limit if own.above else guard.limit < own.limit:
        return f"its limit is {_kind(guard)} {guard.limit:g}, and the component's is {own.limit:g}"
    if guard.seconds > own.seconds:
        return f"it allows the limit to be broken for {guard.seconds:g} s, and the component for {own.seconds:g} s"
    return ""


def _kind(guard: Guard) -> str:
    return ("above" if guard.above else "below") + ("_control" if guard.of_control else "")
