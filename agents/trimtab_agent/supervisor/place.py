"""One instance of a live system in a trial: its settings, readings and guards. Standard library only."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trimtab_agent.supervisor import switch
from trimtab_agent.supervisor.guards import Broken, Guards
from trimtab_agent.supervisor.readings import Readings

# What was read in a time, by metric: pairs of the time (monotonic) and the value.
Samples = Mapping[str, Mapping[float, float]]


class Place:
    """An instance. `live` is its part of the specification (preparation.live_plan)."""

    def __init__(self, live: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        self.live, self._spec = live, spec
        self.name: str = live["instance"]
        self.instance = switch.Instance(Path(live["record"]))
        self.guards = Guards(live["guards"])
        self.readings: Readings | None = None
        # The settings before the trial, and those to which a switch within the trial goes back.
        self.original: Mapping[str, Any] = {}
        self.kept: Mapping[str, Any] | None = None
        self.kept_by = ""
        # Whether this trial checks settings that are kept: they are then its candidate.
        self.checks = False
        # Since when settings are kept here.
        self.since: float | None = None
        # Whether settings of a trial may be in force, and whether the candidate is.
        self.switched = False
        self.is_candidate = False
        # Seconds of the longest switch so far.
        self.slowest_switch = 0.0

    def look_up(self, look: Callable[[], bool]) -> None:
        """Read the settings in force, and start the readings.

        Raises:
            SwitchError: `verify` has failed, or does not show a parameter of the trial.
        """
        before = self.instance.record()
        record = self.record()
        found = switch.settings(record, look)
        for name in record.candidate:
            if name not in found:
                text = f"verify: {record.verify['argv'][0]} does not print {name!r}, which the trial would change"
                raise switch.SwitchError(text)
        self.original = {name: found[name] for name in record.candidate}
        if before is not None and before.kept:
            self.kept_by, self.since, self.switched = before.trial, before.since, True
            if self.checks:
                self.is_candidate = True
            else:
                self.kept = self.original
            self.original = {**self.original, **before.incumbent}
        self.readings = Readings(self.live["readings"], record.folder, record.env, self._spec["prometheus"])

    @property
    def incumbent(self) -> Mapping[str, Any]:
        """The settings that were in force when the trial began."""
        return self.original if self.kept is None else self.kept

    def record(self, *, kept: bool = False, candidate: Mapping[str, Any] | None = None) -> switch.Record:
        """Return what takes the settings of the trial back. `candidate`: settings of an earlier trial that stay."""
        live, stays = self.live, bool(self.kept_by) and (self.checks or candidate is not None)
        return switch.Record(
            component=live["component"],
            instance=live["instance"],
            trial=self.kept_by if stays else self._spec["name"],
            folder=live["folder"],
            env=self._spec["base_env"],
            incumbent=self.original,
            candidate=self._spec["params"] if candidate is None else candidate,
            revert=live["revert"],
            verify=live["verify"],
            fallback=live["fallback"],
            since=self.since if stays and self.since else time.time(),
            kept=kept,
        )

    def begin(self) -> None:
        """Store the record, before the first command that changes something.

        Raises:
            OSError: the disk is full.
        """
        self.switched = True
        self.instance.begin(self.record())

    def to_candidate(self, look: Callable[[], bool]) -> None:
        """Put the settings of the trial in force.

        Raises:
            SwitchError: see switch.apply.
        """
        began = time.monotonic()
        self.is_candidate = True
        switch.apply(self.instance, self.record(), self.live["apply"], look)
        self._note(began)

    def to_incumbent(self, look: Callable[[], bool]) -> None:
        """Put the settings in force that were there when the trial began. The record stays.

        Raises:
            SwitchError: the command has failed, or the settings are not in force in time.
        """
        began = time.monotonic()
        record = self.record()
        if self.kept is not None:
            switch.apply(self.instance, record, self.live["apply"], look, self.kept)
        else:
            switch.call(record, record.revert, look=look)
            switch.await_settings(record, record.incumbent, look)
        self.is_candidate = False
        self._note(began)

    def keep(self, look: Callable[[], bool]) -> None:
        """Put the settings of the trial in force, if they are not, and store that they stay.

        Raises:
            SwitchError: see switch.apply.
            OSError: the disk is full.
        """
        if not self.switched:
            self.begin()
        if not self.is_candidate:
            self.to_candidate(look)
        self.instance.begin(self.record(kept=True))

    def make_durable(self, look: Callable[[], bool]) -> None:
        """Have the component write the settings of the trial into its own configuration; `revert` must then show them.

        Raises:
            SwitchError: a command has failed, or other settings are in force afterwards.
            OSError: the record cannot be removed.
        """
        record = self.record(kept=True)
        switch.call(record, self.live["keep"], json.dumps(dict(record.candidate)), look=look)
        self.is_candidate = False
        switch.call(record, record.revert, look=look)
        switch.await_settings(record, record.candidate, look)
        self.instance.forget()
        self.switched = False

    def keep_incumbent(self, look: Callable[[], bool]) -> None:
        """Put the settings back that an earlier trial has kept, and store that they stay.

        Raises:
            SwitchError: see switch.apply.
            OSError: the disk is full.
        """
        if self.is_candidate:
            self.to_incumbent(look)
        self.instance.begin(self.record(kept=True, candidate=self.kept))

    def look(self, *, control: "Place | None" = None, relative: bool = True) -> Broken | None:
        """Return the first guard that is broken now; `control` and `relative`: see Guards.look."""
        assert self.readings is not None
        source = None if control is None else control.readings
        return self.guards.look(self.readings, control=source, relative=relative)

    def guards_now(self, *, control: "Place | None" = None, relative: bool = True) -> list[dict[str, Any]]:
        """Return the readings of the guards for people; the arguments are those of `look`."""
        source = None if control is None else control.readings
        return [] if self.readings is None else self.guards.now(self.readings, control=source, relative=relative)

    def close(self) -> None:
        """Take no further readings."""
        if self.readings is not None:
            self.readings.close()

    def _note(self, began: float) -> None:
        self.slowest_switch = max(self.slowest_switch, time.monotonic() - began)


def values(samples: Samples) -> dict[str, list[float]]:
    """Return what was read, by metric, without the times."""
    return {name: list(found.values()) for name, found in samples.items()}


def later(samples: Samples, since: float) -> dict[str, dict[float, float]]:
    """Return what was read since a time."""
    return {name: {at: value for at, value in read.items() if at >= since} for name, read in samples.items()}
