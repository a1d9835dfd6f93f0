"""One trial of a live system. Standard library only.

The settings before the trial are measured first (the control). Then the trial's settings are applied, and the old ones
are put back in any case: at the end, when a guard is broken, when the agent dies or does not answer, and when the
service has been away for too long. The result is stored only after that.
"""

import os
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trimtab_agent.signals import Signals
from trimtab_agent.supervisor import machine, switch
from trimtab_agent.supervisor.audit import Audit
from trimtab_agent.supervisor.beats import AGENT, SERVICE, SUPERVISOR, Beats
from trimtab_agent.supervisor.capture import Capture
from trimtab_agent.supervisor.guards import Broken
from trimtab_agent.supervisor.place import Place, Samples, later, values
from trimtab_agent.supervisor.shown import Shown
from trimtab_agent.supervisor.supervise import TrialOverError

BEATS = "beats"
# Seconds between two looks at everything that may end the trial.
LOOK_INTERVAL = 0.1
# Why a supervisor ends that got SIGTERM, which is not the agent's way to cancel a trial.
TERMINATED = "the trial's supervisor was told to end (SIGTERM)"
# Seconds without a sign of the agent after which it counts as dead, for instance because it is stopped.
SILENCE = 1.2


class LiveTrial:
    """The steps of one trial of a live system, with one block on one instance."""

    # Whether the trial can begin from settings that are kept.
    compares = False

    def __init__(self, folder: str, spec: Mapping[str, Any], signals: Signals, agent: socket.socket) -> None:
        self.folder, self.spec, self.signals, self.agent = folder, spec, signals, agent
        self.live: Mapping[str, Any] = spec["live"]
        self.places = [Place(one, spec) for one in (self.live, *self.live["peers"])]
        self.beats = Beats(Path(folder) / BEATS)
        self.log = Capture(os.path.join(folder, "log"), spec["log_limit"])
        self.audit = Audit(folder)
        self.steps: list[tuple[str, float, float]] = []
        self.began = time.monotonic()
        # What people see: the instances whose locks this process has, what happens there, and until when.
        self.shown, self.showing = Shown(), list[Place]()
        self.phase, self.until = "reading", 0.0
        # All readings of the present block, by instance and metric.
        self.seen: dict[str, dict[str, dict[float, float]]] = {}
        # Whether guards hold while a command runs, and the guard that was broken meanwhile.
        self.guarding = False
        self.broken: TrialOverError | None = None

    def run(self) -> dict[str, Any]:
        """Run the trial and return the fields of runners.base.JobResult."""
        over = TrialOverError("completed", "")
        metrics: dict[str, float] = {}
        try:
            metrics = self._measure()
        except TrialOverError as found:
            over = found
        except switch.SwitchError as error:
            text = f"the settings could not be applied: {error}"
            over = self._why_over() or self.broken or TrialOverError("infeasible", text, "live_not_applied")
        except OSError as error:
            # A full disk, for instance, is not the fault of the settings.
            over = TrialOverError("failed", f"the trial's supervisor failed: {error}", "live_not_stored")
        except Exception as error:  # noqa: BLE001  the old settings must be put back after any error
            over = TrialOverError("failed", f"the trial's supervisor failed: {type(error).__name__}: {error}")
        stuck = self._end(over)
        if stuck:
            text = f"the old settings could not be put back: {stuck}\nRun `trimtab-agent live status` on {_node()}"
            over, metrics = TrialOverError("failed", text, "live_stuck"), {}
        if over.reason:
            self.log.add(f"[{over.outcome}] {over.reason}\n".encode())
        self.log.close()
        return {
            "outcome": over.outcome,
            "reason": over.reason,
            "reason_code": over.code,
            "reason_values": over.values,
            "metrics": metrics,
            "elapsed": time.monotonic() - self.began,
            "node": _node(),
            "machine": machine.describe("", self.spec["env"]),
            "steps": self.steps,
            "live": self._found(over),
        }

    def watch(self) -> None:
        """Guard what stays in force after the result is stored. Nothing stays after this trial."""

    def _measure(self) -> dict[str, float]:
        live, place = self.live, self.places[0]
        self._take()
        with self._step("control"):
            control = values(self._observe(live["warm_up"], live["block"], phase="control")[place.name])
        place.guards.set_control(control)
        self.guarding, self.phase = True, "switch"
        self._store(place.begin)
        with self._step("apply"):
            place.to_candidate(self._is_to_go_on)
        self._say(f"in force: {self.spec['params']}")
        self._expect_life()
        with self._step("observe"):
            found = values(self._observe(live["warm_up"], live["block"])[place.name])
        means = {name: statistics.fmean(read) for name, read in found.items() if read}
        self._expect_metrics(means, live["block"])
        for name, value in means.items():
            before = f"{statistics.fmean(control[name]):.6g}" if control[name] else "unknown"
            self._say(f"{name}: {value:.6g}, before: {before}")
        return means

    def _found(self, over: TrialOverError) -> dict[str, Any] | None:
        """Return the field `live` of the result."""
        return None

    # -- steps

    def _take(self) -> None:
        """Wait until no other trial switches the instances, and read their settings."""
        # All trials take them in the same order, so that two never wait for each other.
        for place in sorted(self.places, key=lambda one: one.instance.path):
            record = place.instance.record()
            if record is not None and record.kept and not self.compares:
                text = f"{place.name}: settings of trial {record.trial} are kept. Run `trimtab-agent live revert` first"
                raise TrialOverError("failed", text, "live_kept")
            while not place.instance.take():
                # The process that guards kept settings, now or after its trial, leaves them to this trial.
                place.instance.request(switch.HAND_OVER)
                self._expect_life()
                time.sleep(LOOK_INTERVAL)
            self.showing.append(place)
            place.instance.answer(switch.HAND_OVER, switch.REVERT)
            if obstacle := place.instance.obstacle:
                text = f"{place.name}: {obstacle}. Run `trimtab-agent live status`, then `trimtab-agent live clear`"
                raise TrialOverError("failed", text, "live_stopped")
        for place in self.places:
            try:
                place.look_up(self._is_to_go_on)
            except switch.SwitchError as error:
                raise self._why_over() or TrialOverError("failed", str(error), "live_not_verified") from None

    def _observe(
        self, discard: float, seconds: float, after: Sequence[Place] = (), *, phase: str = "block"
    ) -> dict[str, Samples]:
        """Return the readings of some seconds, by instance and metric, after others that do not count.

        The guards hold for both. `after`: instances that had the candidate just before; until the readings count, it is
        the cause of a broken guard there. `phase` is the name of the seconds that count, for people.
        """
        begin = time.monotonic() + discard
        end = begin + seconds
        self.until = time.time() + discard + seconds
        self.seen = {place.name: {one["name"]: {} for one in place.live["readings"]} for place in self.places}
        since = time.monotonic()
        while (now := time.monotonic()) < end:
            self.phase = "warm_up" if now < begin else phase
            self._expect_life()
            self._expect_guards(after if now < begin else ())
            self._expect_rest()
            for place in self.places:
                assert place.readings is not None
                for name, read in self.seen[place.name].items():
                    latest = place.readings.latest(name)
                    if latest is not None and latest[0] >= since:
                        read[latest[0]] = latest[1]
            time.sleep(LOOK_INTERVAL)
        return {place: later(samples, begin) for place, samples in self.seen.items()}

    def _expect_guards(self, after: Sequence[Place]) -> None:
        # The candidate first: it may be what breaks a guard of the whole machine.
        for place in sorted(self.places, key=lambda one: not one.is_candidate):
            broken = self._look(place)
            if broken is not None:
                self.audit.add("guard", f"{place.name}: {broken.text}")
                raise over_by_guard(broken, is_incumbent=not place.is_candidate and place not in after)

    def _expect_rest(self) -> None:
        """Expect whatever else must hold while readings are taken."""

    def _look(self, place: Place) -> Broken | None:
        control, relative = self._comparison(place)
        return place.look(control=control, relative=relative)

    def _comparison(self, place: Place) -> tuple[Place | None, bool]:
        """Return the instance with which guards compare now, and whether those that compare hold (see Guards.look)."""
        return None, True

    def _store(self, call: Callable[[], None]) -> None:
        """Make a call that waits for the disk, which may take long; all that ends a trial ends it meanwhile, too.

        Raises:
            OSError: the call has raised it.
        """
        failures: list[Exception] = []

        def run() -> None:
            try:
                call()
            except Exception as error:  # noqa: BLE001  raised again in the other thread
                failures.append(error)

        writer = threading.Thread(target=run, daemon=True)
        writer.start()
        while writer.is_alive():
            self._expect_life()
            if self.guarding:
                self._expect_guards(())
            writer.join(LOOK_INTERVAL)
        if failures:
            raise failures[0]

    def _expect_metrics(self, means: Mapping[str, float], seconds: float) -> None:
        for name in self.spec["required"]:
            if name not in means:
                readings = self.places[0].readings
                why = readings.fault(name) if readings is not None else "nothing was read"
                raise TrialOverError("failed", f"metric {name!r}: no reading in {seconds:g} s: {why}")

    def _end(self, over: TrialOverError) -> str:
        """Put the old settings back, and return "", or why that has failed."""
        return self._revert(self.places, over.reason or "the end of the trial")

    def _revert(self, places: Sequence[Place], why: str) -> str:
        """Put the old settings back on instances, newest first, and return "", or why that has failed."""
        found = []
        switched = [place for place in reversed(places) if place.switched]
        if switched:
            self.phase, self.until = "revert", 0.0
            self.audit.add("revert", f"{', '.join(place.name for place in switched)}: {why.partition(chr(10))[0]}")
        for place in reversed(places):
            try:
                if place.switched:
                    with self._step("revert"):
                        # The agent takes a supervisor without signs of life for dead.
                        stuck = place.instance.revert(self._beat)
                    place.switched = place.is_candidate = bool(stuck)
                    place.instance.answer(switch.REVERT)
                    if stuck:
                        found.append(f"{place.name}: {stuck}" if len(places) > 1 else stuck)
            except (OSError, ValueError, KeyError, TypeError) as error:
                found.append(f"{place.name}: {type(error).__name__}: {error}")
            finally:
                if place in self.showing:
                    self.showing.remove(place)
                    self.shown.put(place.instance.path, None)
                place.instance.leave()
                place.close()
        return "; ".join(found)

    # -- what ends the trial

    def _expect_life(self) -> None:
        over = self._why_over()
        if over is not None:
            raise over

    def _is_to_go_on(self) -> bool:
        """Return whether a command that switches settings may go on; the guards hold meanwhile."""
        if self._why_over() is not None:
            return False
        if self.guarding:
            try:
                self._expect_guards(())
            except TrialOverError as over:
                self.broken = over
                return False
        return True

    def _beat(self) -> None:
        self.beats.give(SUPERVISOR)
        if self.shown.is_due():
            for place in self.showing:
                self.shown.put(place.instance.path, self._picture(place))

    def _why_over(self) -> TrialOverError | None:
        """Return why the trial must end now, whatever the system does."""
        self._beat()
        if self.signals.stopped:
            return TrialOverError("cancelled", "cancelled")
        if self.signals.terminated:
            return TrialOverError("failed", TERMINATED, "live_no_agent")
        for place in self.places:
            if place.instance.is_stopped:
                return TrialOverError("failed", "somebody has run `trimtab-agent live stop`", "live_stopped")
            # Before this process has the lock, the request is for another one.
            if place.switched and place.instance.is_requested(switch.REVERT):
                return TrialOverError("failed", place.instance.why_revert(), "live_stopped")
        if silence := self._agent_silence():
            return TrialOverError("failed", silence, "live_no_agent")
        away = self.beats.age(SERVICE)
        if away > self.live["away"]:
            return TrialOverError("failed", f"the service has been away for {away:.0f} s", "live_no_service")
        return None

    def _agent_silence(self) -> str:
        """Return "", or why the agent counts as dead."""
        try:
            gone = self.agent.recv(1) == b""
        except BlockingIOError:
            gone = False
        if gone:
            return "the agent has ended"
        return "the agent does not answer" if self.beats.age(AGENT) > SILENCE else ""

    # -- for people

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        began = time.time()
        try:
            yield
        finally:
            self.steps.append((name, began, time.time()))

    def _picture(self, place: Place) -> dict[str, Any]:
        """Return what people see of an instance."""
        control, relative = self._comparison(place)
        return {
            "folder": os.path.basename(self.folder),
            "phase": self.phase,
            "until": self.until,
            "candidate": place.is_candidate,
            "settings": dict(self.spec["params"] if place.is_candidate else place.incumbent),
            "guards": place.guards_now(control=control, relative=relative),
            "looks": [],
        }

    def _say(self, text: str) -> None:
        self.log.add(f"[{text}]\n".encode())


def over_by_guard(broken: Broken, *, is_incumbent: bool) -> TrialOverError:
    """Return how a trial ends with a broken guard. Under the incumbent, the trial's settings are not the cause."""
    found = {
        "guard": broken.guard,
        "metric": broken.metric,
        "value": "none" if broken.value is None else f"{broken.value:.6g}",
        "limit": f"{broken.limit:.6g}",
        "seconds": f"{broken.seconds:.1f}",
    }
    if is_incumbent:
        text = f"the settings before the trial break a guard: {broken.text}"
        return TrialOverError("failed", text, "live_guard_broken_before", **found)
    return TrialOverError("infeasible", broken.text, "live_guard_broken", **found)


def _node() -> str:
    return os.uname().nodename
