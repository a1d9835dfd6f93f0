"""The roll-out of kept settings: to further instances in stages, then watched, with the way back at every step.

Settings that a trial has kept on the first instances go to the next ones, each stage in a comparison with instances
that still have the earlier settings. From three instances on, the last one is held back: it has the earlier settings
until the watch ends, so that the gain goes on being measured. With fewer, some blocks of each check have them.

Checks follow each week, and one at the end of the watch. They add to one body of evidence. The agent takes everything
back by itself; this module only follows what it reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from service.core.space import Configuration

ALL = "all"
WEEK = 7 * 24 * 3600.0
# From so many instances on, one is held back.
_LEAST_FOR_HOLDBACK = 3
# A stage that ends so many times before its test could decide is left out. A check is tried again after a while.
MOST_TRIES = 3
_AGAIN = 3600.0
# The pairs of checks whose evidence is carried on.
MOST_EARLIER = 500
STAGE: Literal["stage"] = "stage"
WATCH: Literal["watch"] = "watch"


@dataclass(frozen=True, slots=True)
class Step:
    """The next trial of a roll-out.

    `places`: its instances, of which the first `count` get or have the settings. `durable`: it is the last check.
    """

    kind: Literal["stage", "watch"]
    design: Literal["switchback", "crossover", "canary"]
    places: tuple[str, ...]
    count: int
    durable: bool = False


@dataclass(frozen=True, slots=True)
class Rollout:
    """The roll-out of settings that trial number `trial` has kept.

    `before`: the settings before them, and `original`: those before all kept steps. `instances`: all that may get the
    settings, in their order. `stages`: how many have them after each stage. `in_force`: those that have them now,
    oldest first. `held`: why no further stage follows. `since`: when the last stage ended, in seconds; None before
    that. `tries`: of the present step. `effects`: of the pairs of all checks, and `deviation`: the one on which their
    bets are made. `search_over`: why the search has ended meanwhile, as `reasons.stored` has it.
    """

    trial: int
    params: Configuration
    before: Configuration
    original: Configuration
    instances: tuple[str, ...]
    held_back: tuple[str, ...]
    stages: tuple[int, ...]
    in_force: tuple[str, ...]
    watch: float
    since: float | None = None
    held: str = ""
    checks: int = 0
    tries: int = 0
    not_before: float = 0.0
    effects: tuple[float, ...] = ()
    deviation: float = 0.0
    # The ratios of metrics to the start under the settings before.
    chain: Mapping[str, float] = field(default_factory=dict)
    search_over: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON from which `from_json` makes an equal roll-out."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rollout:
        """Return the roll-out that `to_json` has written."""
        lists = ("instances", "held_back", "stages", "in_force", "effects")
        return cls(**{**data, **{name: tuple(data[name]) for name in lists}})

    @property
    def stage(self) -> int:
        """The number of stages that are done."""
        return sum(len(self.in_force) >= one for one in self.stages)

    @property
    def is_rolling(self) -> bool:
        """True while further instances are to get the settings."""
        return self.since is None

    @property
    def watched_until(self) -> float | None:
        """When the watch ends; None while the settings still go to further instances."""
        return None if self.since is None else self.since + self.watch

    @property
    def due_at(self) -> float:
        """The time from which on the next step may begin, in seconds; 0: at once."""
        if self.since is None:
            return self.not_before
        return max(self.not_before, self.since + min(self.watch, (self.checks + 1) * WEEK))

    def next_step(self) -> Step:
        """Return the next step, which begins at `due_at` or later."""
        if self.since is None:
            have, target = len(self.in_force), self.stages[self.stage]
            new = self.instances[have:target]
            others = (*self.instances[target:], *self.held_back)
            return Step(STAGE, "canary" if others else "switchback", (*new, *others), len(new))
        durable = self.due_at >= self.since + self.watch
        checked = self.in_force[self.checks % len(self.in_force)]
        rest = tuple(one for one in self.in_force if one != checked)
        against = self.held_back[:1] or rest[:1]
        others = tuple(one for one in rest if one not in against) if durable else ()
        places = (checked, *against, *others)
        return Step(WATCH, "crossover" if against else "switchback", places, len(self.in_force), durable)

    def stage_kept(self, now: float) -> Rollout:
        """Return the roll-out after a stage whose instances have kept the settings."""
        step = self.next_step()
        found = replace(self, in_force=(*self.in_force, *step.places[: step.count]), tries=0)
        return replace(found, since=now) if len(found.in_force) >= found.stages[-1] else found

    def checked(self, effects: Sequence[float], deviation: float, now: float) -> Rollout | None:
        """Return the roll-out after a check that has found no harm; None after the last one."""
        if self.since is None or self.next_step().durable:
            return None
        return replace(
            self,
            checks=max(self.checks + 1, int((now - self.since) // WEEK)),
            tries=0,
            not_before=0.0,
            effects=(*self.effects, *effects)[-MOST_EARLIER:],
            deviation=self.deviation or deviation,
        )

    def interrupted(self, why: str, now: float) -> Rollout:
        """Return the roll-out after a step that has ended before its test could decide."""
        found = replace(self, tries=self.tries + 1)
        if found.tries < MOST_TRIES:
            return found
        if found.since is None:
            return found.hold(why, now)
        return replace(found, tries=0, not_before=now + _AGAIN)

    def hold(self, why: str, now: float) -> Rollout:
        """Return the roll-out without further stages: what has the settings is watched."""
        rest = tuple(one for one in self.instances if one not in self.in_force)
        return replace(
            self,
            held=str(why),  # a reason with a code cannot be copied
            since=now,
            tries=0,
            instances=self.in_force,
            held_back=(*self.held_back, *rest),
            stages=(len(self.in_force),),
        )


def begin(
    trial: int,
    params: Configuration,
    *,
    before: Configuration,
    original: Configuration,
    instances: Sequence[str],
    kept_on: Sequence[str],
    wanted: Sequence[int | str],
    watch: float,
    now: float,
    held_back: Sequence[str] = (),
    chain: Mapping[str, float] | None = None,
) -> Rollout:
    """Return the roll-out of settings that a trial has just kept on `kept_on`.

    `instances`: all that the study may switch. `held_back`: those that an earlier roll-out holds back.
    """
    back = tuple(held_back)
    if not back and len(instances) >= _LEAST_FOR_HOLDBACK:
        spare = [one for one in instances if one not in kept_on]
        back = tuple(spare[-1:])
    free = [one for one in instances if one not in back and one not in kept_on]
    ordered = (*kept_on, *free)
    stages = sorted({min(len(ordered), len(ordered) if one == ALL else int(one)) for one in wanted})
    reached = tuple(one for one in stages if one >= len(kept_on)) or (len(kept_on),)
    limited = ordered[: reached[-1]]
    return Rollout(
        trial=trial,
        params=dict(params),
        before=dict(before),
        original=dict(original),
        instances=limited,
        held_back=(*back, *ordered[len(limited) :]),
        stages=reached,
        in_force=tuple(kept_on),
        watch=watch,
        since=now if len(kept_on) >= reached[-1] else None,
        chain=dict(chain or {}),
    )


def first_places(free: Sequence[str], design: str, count: int) -> tuple[str, ...]:
    """Return the instances of a trial of the search: the first ones with the settings in force, as its design needs.

    `count`: how many may keep the candidate.
    """
    return tuple(free[: {"switchback": 1, "crossover": max(2, count), "canary": len(free)}[design]])
