"""One trial of a live study: pairs of blocks of candidate and incumbent. Standard library only.

A coin decides the order of each pair, so that a change of the load is no effect. After each pair the test of
`trimtab_components.pairs` decides whether the trial goes on. At its end the settings before it are in force again, or
the candidate stays if its gain is proven and the plan says so; then this process guards it.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trimtab_agent.files import write_atomically
from trimtab_agent.supervisor import hours, switch
from trimtab_agent.supervisor.costs import LEDGER, Costs, EndedError
from trimtab_agent.supervisor.ledger import DAY, Ledger
from trimtab_agent.supervisor.live_trial import LOOK_INTERVAL, TERMINATED, LiveTrial
from trimtab_agent.supervisor.place import Place, Samples, later, values
from trimtab_agent.supervisor.supervise import TrialOverError
from trimtab_components.pairs import Evidence, candidate_first, commitment

# The file that says why a trial does not begin, for people.
WAITING = "waiting"
# Seconds for which the incumbent must break no guard before the first pair, at most.
HEALTHY = 60.0
# Blocks of the incumbent with which the guards of one instance compare.
CONTROLS = 2
# The latest pairs that people see while the trial runs.
MOST_LOOKS = 200
# A throughput of 0 counts as this share of the incumbent's.
FLOOR = 1e-3
# Ends after which settings that an earlier trial has kept do not stay either.
TAKE_ALL = ("live_stopped", "live_no_agent", "live_guard_broken_before", "live_not_verified")


@dataclass
class Block:
    """A time with one set of instances under the candidate. `kept` are the readings that count."""

    treated: Sequence[Place]
    seen: Mapping[str, Samples]
    kept: Mapping[str, Samples]
    # The begin of the last third of the seconds that count.
    last_third: float


@dataclass
class Pair:
    """Two blocks. See the message LivePair."""

    candidate_first: bool
    candidate: float
    incumbent: float
    began: float
    load: float = 0.0
    candidate_metrics: Mapping[str, float] = field(default_factory=dict)
    incumbent_metrics: Mapping[str, float] = field(default_factory=dict)


class PairedTrial(LiveTrial):
    """The steps of a trial of a live study."""

    compares = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.plan: Mapping[str, Any] = self.live["plan"]
        self.rules: Mapping[str, Any] = self.live["rules"]
        self.warm_up: float = self.plan["warm_up"] or self.live["warm_up"]
        self.block: float = self.plan["block"] or self.live["block"]
        self.deadline = self.began + self.plan["seconds_left"] if self.plan["seconds_left"] else math.inf
        self.evidence, self.late = Evidence(self.plan["deviation"]), Evidence(self.plan["deviation"])
        self.pairs: list[Pair] = []
        # What the test has said after each pair, for people.
        self.looks: list[dict[str, Any]] = []
        self.decision = ""
        self.repeated = False
        self.controls: deque[Mapping[str, list[float]]] = deque(maxlen=CONTROLS)
        self.floor = 0.0
        self.read: dict[str, list[float]] = {}
        self.costs = Costs(self.spec["name"], self.plan["budgets"], self.places)
        # The instances that had the candidate in the block before, and in any.
        self.before: Sequence[Place] = ()
        self.had_candidate: list[str] = []
        # The instances where settings stay in force after the trial.
        self.keeping: list[Place] = []
        self.stays = False
        self.rolled_back = False

    # -- the trial

    def _measure(self) -> dict[str, float]:
        self._await_rules()
        self._take()
        self._expect_equal()
        self._store(self.costs.load)
        self.audit.add("plan", self._plan_in_words())
        with self._step("control"):
            self._control()
        self.guarding = True
        try:
            with self._step("pairs"):
                self._compare()
        except EndedError as ended:
            self._say(ended.reason)
            if not self.pairs:
                raise TrialOverError("failed", ended.reason, f"live_{ended.decision}") from None
            self.decision = ended.decision
        self._say(f"decision after {len(self.pairs)} pairs: {self.decision}")
        means = {name: statistics.fmean(read) for name, read in self.read.items() if read}
        self._expect_metrics(means, self.block)
        return means

    def _compare(self) -> None:
        plan, number = self.plan, 0
        while not self.decision:
            number += 1
            self._expect_time(2 * (self.warm_up + self.block))
            value, late = self._pair(number)
            self.evidence.add(value)
            self.late.add(late)
            low, high = self.evidence.interval()
            self._note_look(value, low, high)
            self._say(
                f"pair {number}: {value:+.4f}, effect {self.evidence.effect:+.4f}, interval {low:+.4f} to {high:+.4f}"
                " (logarithms; below 0 is better)"
            )
            decision = self.evidence.decide(plan["min_gain"], plan["least_pairs"], plan["most_pairs"])
            if decision and decision != "harm" and not low <= self.late.effect <= high:
                # What comes late in a block differs from the whole: the earlier settings have an effect after a switch.
                if self.repeated:
                    self.decision = "carry_over"
                    return
                self._repeat()
                continue
            self.decision = decision

    def _repeat(self) -> None:
        """Begin again, with blocks that are twice as long."""
        self.repeated = True
        self.warm_up, self.block = 2 * self.warm_up, 2 * self.block
        self._say(f"the effect goes on after a switch; the trial begins again with blocks of {self.block:g} s")
        self.audit.add("plan", f"carry-over: warm_up {self.warm_up:g} s, block {self.block:g} s")
        # The pairs of the shorter blocks are earlier pairs for the deviation.
        deviation = self.evidence.spread or self.evidence.deviation
        self.evidence, self.late, self.pairs, self.read = Evidence(deviation), Evidence(deviation), [], {}
        self.looks = []

    def _pair(self, number: int) -> tuple[float, float]:
        """Measure a pair, and return its value, and the value by the last third of the seconds that count."""
        first = candidate_first(self.plan["seed"], number)
        swap = self.plan["design"] == "crossover"
        sets = [self.places[:1], self.places[1:2]] if swap else [self._treated(), []]
        began = time.time()
        blocks = [self._block(treated) for treated in (sets if first else sets[::-1])]
        pair = Pair(
            first, *self._means(blocks, None), began=began, load=self.costs.load_of([one.seen for one in blocks])
        )
        pair.candidate_metrics, pair.incumbent_metrics = self._other_means(blocks)
        self.pairs.append(pair)
        without = [(one.seen, place) for one in blocks for place in self.places if place not in one.treated]
        self._store(lambda: self.costs.close(without))
        if len(self.places) == 1:
            self.controls.append(values(next(one for one in blocks if not one.treated).kept[self.places[0].name]))
            self._set_controls()
        late = self._means(blocks, [one.last_third for one in blocks])
        sign = -1.0 if self.plan["maximize"] else 1.0
        return sign * (pair.candidate - pair.incumbent), sign * (late[0] - late[1])

    def _treated(self) -> list[Place]:
        """Return the instances that have the candidate in one block of a pair: all but one at most."""
        return self.places[: max(1, min(self.plan["instances"], len(self.places) - 1))]

    def _block(self, treated: Sequence[Place]) -> Block:
        before, self.before, self.seen = self.before, treated, {}
        self.phase, self.until = "switch", 0.0
        if treated:
            seconds = self.warm_up + self.block
            self._store(lambda: self.costs.begin(treated, time.time(), seconds))
        for place in self.places:
            if place.is_candidate and place not in treated:
                place.to_incumbent(self._is_to_go_on)
                self.audit.add("switch", f"{place.name}: the incumbent")
        for place in treated:
            if not place.is_candidate:
                if not place.switched or place.kept is not None:
                    self._store(place.begin)
                    self.audit.add("apply", f"{place.name}: {_words(self.spec['params'])}")
                if place.name not in self.had_candidate:
                    self.had_candidate.append(place.name)
                place.to_candidate(self._is_to_go_on)
                self.audit.add("switch", f"{place.name}: the candidate")
        self._expect_life()
        for place in self.places:
            place.guards.reset()
        begin = time.monotonic() + self.warm_up
        kept = self._observe(self.warm_up, self.block, before)
        if treated:
            self.costs.end(self.seen)
        return Block(treated, self.seen, kept, begin + self.block * 2 / 3)

    def _control(self) -> None:
        """Watch the incumbent before the first pair. It must be healthy, and the guards compare with it."""
        new = [place for place in self.places if not place.instance.is_calibrated(place.live["guards"])]
        seconds = max(min(HEALTHY, self.block), self.live["calibrate"] if new else 0.0)
        kept = self._observe(0.0, seconds, phase="control")
        for place in new:
            place.instance.note_calibrated(place.live["guards"])
        self.controls.append(values(kept[self.places[0].name]))
        self._set_controls()
        objective = [one for place in self.places for one in kept[place.name][self.plan["objective"]].values()]
        self.floor = FLOOR * statistics.median(objective) if objective else 0.0
        self.costs.learn(kept, self.places)

    def _set_controls(self) -> None:
        pooled: dict[str, list[float]] = {}
        for control in self.controls:
            for name, read in control.items():
                pooled.setdefault(name, []).extend(read)
        for place in self.places:
            place.guards.set_control(pooled)

    def _comparison(self, place: Place) -> tuple[Place | None, bool]:
        if not place.is_candidate or place in self.keeping:
            return None, False
        if len(self.places) == 1:
            return None, True
        control = next((one for one in self.places if not one.is_candidate), None)
        return control, control is not None

    # -- what a pair says

    def _means(self, blocks: Sequence[Block], since: Sequence[float] | None) -> tuple[float, float]:
        """Return the means of the objective's logarithms under candidate and incumbent, at the same load.

        `since`: for each block, the time from which on readings count.
        """
        found: list[dict[str, float]] = []
        for number, block in enumerate(blocks):
            found.append({})
            for place in self.places:
                kept = block.kept[place.name]
                read = (later(kept, since[number]) if since else kept)[self.plan["objective"]]
                if since and not read:
                    read = kept[self.plan["objective"]]
                found[number][place.name] = self._mean_log(place, list(read.values()))
        with_candidate = [found[number][place.name] for number, block in enumerate(blocks) for place in block.treated]
        if self.plan["design"] == "crossover":
            without = [
                found[number][place.name]
                for number, block in enumerate(blocks)
                for place in self.places[:2]
                if place not in block.treated
            ]
            return statistics.fmean(with_candidate), statistics.fmean(without)
        (on, off) = (0, 1) if blocks[0].treated else (1, 0)
        treated = blocks[on].treated
        without = [found[off][place.name] for place in treated]
        others = [place for place in self.places if place not in treated]
        # What has changed on the other instances meanwhile is the load.
        change = statistics.fmean(found[on][one.name] - found[off][one.name] for one in others) if others else 0.0
        return statistics.fmean(with_candidate), statistics.fmean(without) + change

    def _mean_log(self, place: Place, read: Sequence[float]) -> float:
        if self.plan["maximize"]:
            # A second without any throughput is the worst one, and not one without a reading.
            read = [max(one, self.floor) for one in read]
        positive = [math.log(one) for one in read if one > 0]
        if not positive:
            name = self.plan["objective"]
            why = (
                "is not above 0" if read else f"has no reading: {place.readings.fault(name) if place.readings else ''}"
            )
            text = f"{place.name}: the objective {name!r} {why}. A live study compares ratios"
            raise TrialOverError("failed", text, "live_no_objective")
        return statistics.fmean(positive)

    def _other_means(self, blocks: Sequence[Block]) -> tuple[dict[str, float], dict[str, float]]:
        """Return the means of all metrics under candidate and incumbent."""
        found: tuple[dict[str, list[float]], dict[str, list[float]]] = ({}, {})
        for block in blocks:
            for place in self.places:
                for name, read in values(block.kept[place.name]).items():
                    side = found[0] if place in block.treated else found[1]
                    side.setdefault(name, []).extend(read)
        for name, read in found[0].items():
            self.read.setdefault(name, []).extend(read)
        one, other = ({name: statistics.fmean(read) for name, read in side.items() if read} for side in found)
        return one, other

    def _expect_rest(self) -> None:
        treated = [place for place in self.places if place.is_candidate]
        if treated:
            self.costs.expect_budget(treated, self.seen)
            self._expect_time(2 * max(place.slowest_switch for place in self.places))

    # -- when a trial may run

    def _await_rules(self) -> None:
        """Wait until the administrator's rules allow a trial here now."""
        told = ""
        while why := self._why_waiting():
            self._expect_life()
            if time.monotonic() > self.deadline:
                raise TrialOverError("failed", f"the window has ended: {why}", "live_window")
            if why != told:
                told = why
                with suppress(OSError):  # for people alone
                    write_atomically(Path(self.folder) / WAITING, why.encode())
            time.sleep(LOOK_INTERVAL)
        (Path(self.folder) / WAITING).unlink(missing_ok=True)

    def _why_waiting(self) -> str:
        allowed, exposure = self.rules["hours"], self.rules["exposure"]
        if allowed is not None and not hours.seconds_left(allowed):
            begin = time.strftime("%a %H:%M", time.localtime(time.time() + hours.seconds_until(allowed)))
            return f"Rule live.hours: {allowed['text']}. The trial begins at {begin}"
        if exposure is not None:
            for place in self.places:
                found = Ledger(place.instance.path.with_suffix(LEDGER)).exposure()
                if found + self.warm_up + self.block > exposure * DAY:
                    return (
                        f"Rule live.exposure: {exposure:g}. Settings of trials were in force on {place.name} for"
                        f" {found / 3600:.1f} of the last 24 hours; the trial waits until they are fewer"
                    )
        return ""

    def _expect_time(self, seconds: float) -> None:
        """Expect that so many seconds are left, in the window, in the hours and for the exposure."""
        if time.monotonic() + seconds > self.deadline:
            raise EndedError("window", "the window ends before the next switch")
        allowed, exposure = self.rules["hours"], self.rules["exposure"]
        if allowed is not None and hours.seconds_left(allowed) <= seconds:
            raise EndedError("window", f"the hours end (rule live.hours: {allowed['text']})")
        if exposure is not None and self.costs.exposure() > exposure * DAY:
            raise EndedError(
                "window", f"settings of trials were in force for too long (rule live.exposure: {exposure:g})"
            )

    def _expect_equal(self) -> None:
        """Expect that all instances have the same settings: a comparison would show their difference."""
        first = self.places[0]
        for place in self.places[1:]:
            for name, value in first.incumbent.items():
                if not switch.same(place.incumbent[name], value):
                    text = (
                        f"{name} is {value!r} on {first.name} and {place.incumbent[name]!r} on {place.name}, but a"
                        " trial compares instances with equal settings. Run `trimtab-agent live revert`, or set them"
                        " alike"
                    )
                    raise TrialOverError("failed", text, "live_unequal")

    # -- the end

    def _end(self, over: TrialOverError) -> str:
        if not over.reason and self.decision == "keep" and self.plan["keep"]:
            self._keep()
        if over.code not in TAKE_ALL:
            for place in self.places:
                if place.kept is not None and place.switched and place not in self.keeping:
                    with suppress(switch.SwitchError, OSError):
                        place.keep_incumbent(self._still_lives)
                        self.keeping.append(place)
        ended = over.reason or f"the trial has ended: {self.decision}"
        stuck = self._revert([place for place in self.places if place not in self.keeping], ended)
        if over.code == "live_guard_broken_before" and any(place.kept is not None for place in self.places):
            stuck = "; ".join(filter(None, [stuck, self._roll_back(ended)]))
        self._close_costs()
        return stuck

    def _close_costs(self) -> None:
        with suppress(OSError):  # the ledger then has the most that the block can have cost
            self.costs.close(seen=self.seen)

    def _roll_back(self, why: str) -> str:
        """Have all settings of the study taken back, newest first, and return "", or what stays."""
        self.rolled_back = True
        folder, component = self.places[0].instance.path.parent, self.live["component"]
        said = f"the settings of the study are taken back on all instances: {why.partition(chr(10))[0]}"
        own, stuck = {place.instance.path: place for place in self.places if place.switched}, []
        for instance in switch.of_study(folder, component, self.spec["name"].rpartition("/")[0]):
            if instance.path in own:
                stuck.append(self._revert([own[instance.path]], why))
            else:
                stuck.append(switch.have_reverted(instance, said, self._beat))
        return "; ".join(filter(None, stuck))

    def _keep(self) -> None:
        """Let the candidate stay in force."""
        most = self.rules["instances"] or len(self.places)
        wanted = self.plan["instances"] or (2 if self.plan["design"] == "crossover" else 1)
        chosen = self.places[: min(most, wanted)]
        if not all(place.guards.is_absolute for place in chosen):
            self._say("not kept: all guards compare with a control, and there is none later. Add one with `above`")
            return
        try:
            for place in chosen:
                place.keep(self._still_lives)
                self.keeping.append(place)
                self.audit.add("keep", f"{place.name}: {_words(self.spec['params'])}")
        except (switch.SwitchError, OSError) as error:
            self._say(f"not kept: {error}")
            self.keeping = []
            return
        self.had_candidate += [place.name for place in chosen if place.name not in self.had_candidate]
        self.stays = True

    def _still_lives(self) -> bool:
        """Return whether nothing but the end of the trial asks for the old settings."""
        over = self._why_over()
        return over is None or over.code == "live_no_service" or over.outcome == "cancelled"

    def _found(self, over: TrialOverError) -> dict[str, Any] | None:
        decision = self.decision
        if over.code:
            ends = {"live_guard_broken": "guard", "live_guard_broken_before": "guard"}
            ends |= {f"live_{name}": name for name in ("budget", "window")}
            decision = ends.get(over.code, "stopped")
        elif over.reason:
            decision = "stopped"
        test = self.late if decision == "carry_over" else self.evidence
        low, high = test.interval()
        effect = test.effect
        if self.plan["maximize"]:
            effect, low, high = -effect, -high, -low
        return {
            "decision": decision,
            "pairs": [asdict(pair) for pair in self.pairs],
            "effect": effect if test.pairs else None,
            "low": low if math.isfinite(low) else None,
            "high": high if math.isfinite(high) else None,
            "deviation": test.spread,
            "cost": self.costs.spent,
            "incumbent": dict(self.places[0].incumbent),
            "instances": self.had_candidate,
            "kept": self.stays and not over.reason,
            "rolled_back": self.rolled_back,
            # For the agent: settings stay in force, those of this trial or of an earlier one.
            "stays": bool(self.keeping),
            "audit": self.audit.entries,
        }

    def watch(self) -> None:
        """Guard what stays in force, until somebody asks for the old settings or the next trial begins."""
        self.costs.reported()
        self.phase, self.until = "kept", 0.0
        for place in self.keeping:
            place.guards.reset()
            # A trial that still waits repeats its request.
            place.instance.answer(switch.HAND_OVER)
        while self.keeping:
            self._beat()
            for place in [one for one in self.keeping if one.instance.is_requested(switch.HAND_OVER)]:
                self.keeping.remove(place)
                self.showing.remove(place)
                place.instance.leave()
                place.close()
            broken = self._broken_kept()
            if why := broken or self._why_taken_back():
                for place in self.keeping:
                    place.instance.note(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {why}")
                self._revert(self.keeping, why)
                if broken:
                    self._roll_back(why)
                return
            time.sleep(LOOK_INTERVAL)

    def _why_taken_back(self) -> str:
        """Return "", or why settings that stay in force must go now."""
        if self.signals.terminated:
            return TERMINATED
        for place in self.keeping:
            if place.instance.is_stopped:
                return "somebody has run `trimtab-agent live stop`"
            if place.instance.is_requested(switch.REVERT):
                return place.instance.why_revert()
        return self._agent_silence()

    def _broken_kept(self) -> str:
        """Return "", or which guard of kept settings is broken.

        There is no control any more, so the guards that compare with one do not hold.
        """
        broken = (place.look(relative=False) for place in self.keeping)
        return next((one.text for one in broken if one is not None), "")

    def _note_look(self, value: float, low: float, high: float) -> None:
        """Note what the test says after a pair, turned as the objective is."""
        sign = -1.0 if self.plan["maximize"] else 1.0
        low, high = sorted((sign * low, sign * high))
        self.looks.append(
            {
                "at": time.time(),
                "value": sign * value,
                "effect": sign * self.evidence.effect,
                "low": low if math.isfinite(low) else None,
                "high": high if math.isfinite(high) else None,
            }
        )

    def _picture(self, place: Place) -> dict[str, Any]:
        # The pairs are those of the trial: one of its instances shows them.
        looks = self.looks[-MOST_LOOKS:] if place is self.places[0] else []
        return {**super()._picture(place), "looks": looks, "pairs": len(self.pairs)}

    def _plan_in_words(self) -> str:
        plan = self.plan
        return (
            f"{plan['design']} on {', '.join(place.name for place in self.places)}: {_words(self.spec['params'])};"
            f" before: {_words(self.places[0].incumbent)}; commitment {commitment(plan['seed'])}"
        )


def _words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
