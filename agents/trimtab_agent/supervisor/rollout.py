"""A trial of a roll-out: kept settings go to further instances, or are compared again. Standard library only.

A `stage` compares new instances with those that still have the earlier settings, and keeps the settings there. A
`watch` compares kept settings with those before them. If either shows that they are worse, or a guard is broken, the
settings of the study are taken back on all instances.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from trimtab_agent.supervisor import switch
from trimtab_agent.supervisor.paired import TAKE_ALL, PairedTrial
from trimtab_agent.supervisor.place import Place
from trimtab_agent.supervisor.supervise import TrialOverError

STAGE, WATCH = "stage", "watch"
# The decisions and codes after which everything goes back. A stage has to repeat the proof; a watch has to find harm.
_BACK = {STAGE: ("harm", "futile", "most", "carry_over"), WATCH: ("harm",)}
_BACK_CODES = ("live_guard_broken", "live_guard_broken_before", "live_not_applied", "live_rolled_back")


class RolloutTrial(PairedTrial):
    """The steps of one stage of a roll-out, or of one check of kept settings."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.step: str = self.plan["step"]
        self.in_force = [switch.Instance(Path(one)) for one in self.live["in_force"]]
        for place in self.places:
            place.checks = self.step == WATCH
        for value in self.plan["earlier"]:
            self.evidence.add(value)
            self.late.add(value)

    def _take(self) -> None:
        self._expect_in_force()
        super()._take()

    def _expect_rest(self) -> None:
        self._expect_in_force()
        super()._expect_rest()

    def _expect_in_force(self) -> None:
        """Expect that the settings are still in force on all instances of the roll-out."""
        for instance in self.in_force:
            if not instance.path.exists():
                text = f"the kept settings are no longer in force on {instance.path.stem}"
                raise TrialOverError(
                    "failed", f"{text}: {instance.last}" if instance.last else text, "live_rolled_back"
                )

    def _end(self, over: TrialOverError) -> str:
        if over.code in _BACK_CODES or (not over.reason and self.decision in _BACK[self.step]):
            why = over.reason or f"the {self.step} has ended: {self.decision}"
            # An instance with a broken guard goes first.
            own = self._revert(self.places, why) if over.reason else ""
            stuck = "; ".join(filter(None, [own, self._roll_back(why), self._revert(self.places, why)]))
            self._close_costs()
            return stuck
        if self.step == STAGE:
            return super()._end(over)
        if over.code not in TAKE_ALL:
            self._stay(extend=not over.reason and self.plan["durable"])
        left = [place for place in self.places if place not in self.keeping]
        stuck = self._revert(left, over.reason or "the end of the check")
        self._close_costs()
        return stuck

    def _stay(self, extend: bool) -> None:
        """Let the checked settings stay where they are kept. `extend`: on all instances, and for good if possible."""
        for place in self.places:
            if not (place.kept_by or extend):
                continue
            with suppress(switch.SwitchError, OSError):  # what is not kept is taken back
                place.keep(self._still_lives)
                self.keeping.append(place)
                self.stays = True
        for place in list(self.keeping) if extend and self.live["keep"] is not None else ():
            self._make_durable(place)

    def _make_durable(self, place: Place) -> None:
        try:
            place.make_durable(self._still_lives)
        except (switch.SwitchError, OSError) as error:
            self._say(f"{place.name}: not written durably, so it stays under guards: {error}")
            with suppress(switch.SwitchError, OSError):
                place.keep(self._still_lives)
                return
            self.keeping.remove(place)
            return
        self.audit.add("keep", f"{place.name}: written durably")
        self.keeping.remove(place)
        # Nothing is switched any more, so that this only leaves the instance.
        self._revert([place], "")
