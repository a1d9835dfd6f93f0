"""Writes what was found as a file of dynamic rules, as Open MPI reads it:

    mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...

The file is a sequence of whole numbers; `#` begins a comment. It nests: collectives by number, then numbers of ranks,
then message sizes, each entry being valid from its own number up to the next one's. Open MPI takes the first entry for
whatever is below it as well, and the last one for whatever is above. So each level here begins with 0 and ends above
what was measured, with algorithm 0, by which Open MPI decides itself: nothing is ruled that was not measured.

Open MPI says nothing of a file that it cannot read: it goes on without.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

# Open MPI's numbers, in the order of its list of collectives, which has not changed since 1.0 for these.
COLLECTIVE_NUMBERS = {"allreduce": 2, "bcast": 7, "gather": 9, "reduce": 11}
OWN_DECISION = (0, 0, 0)


@dataclass(frozen=True)
class Rule:
    """What one collective shall do with messages of `size` bytes a rank and more, among `ranks` and more.

    `algorithm` is Open MPI's number, 0 to leave it to Open MPI; `segment` is in bytes.
    """

    collective: str
    ranks: int
    size: int
    algorithm: int
    fanout: int = 0
    segment: int = 0
    comment: str = ""

    @property
    def total(self) -> int:
        """The size by which Open MPI looks it up: for gather, what the root receives from all ranks."""
        return self.size * self.ranks if self.collective == "gather" else self.size


def render(rules: Iterable[Rule]) -> str:
    """The file's text. Between two sizes that were measured, the rule of the smaller one is valid, and likewise between
    numbers of ranks; at twice the greatest size and from one rank more than the greatest number, no rule any more.

    Raises:
        ValueError: two rules for one case, or a collective that is not known.
    """
    ordered = sorted(rules, key=lambda rule: (rule.collective, rule.ranks, rule.total))
    cases = [(rule.collective, rule.ranks, rule.size) for rule in ordered]
    if len(set(cases)) < len(cases):
        raise ValueError("two rules for one collective, number of ranks and message size")
    if unknown := {rule.collective for rule in ordered} - set(COLLECTIVE_NUMBERS):
        raise ValueError(f"unknown collectives: {', '.join(sorted(unknown))}")
    by_collective = {name: list(group) for name, group in groupby(ordered, lambda rule: rule.collective)}
    lines = [f"{len(by_collective)} # collectives"]
    for name, of_collective in by_collective.items():
        by_ranks = {ranks: list(group) for ranks, group in groupby(of_collective, lambda rule: rule.ranks)}
        lines += [f"{COLLECTIVE_NUMBERS[name]} # {name}", f"{len(by_ranks) + 2} # numbers of ranks"]
        lines += ["0 # ranks and more", *_messages([])]
        for ranks, of_ranks in by_ranks.items():
            lines += [f"{ranks} # ranks and more", *_messages(of_ranks)]
        lines += [f"{max(by_ranks) + 1} # ranks and more: not measured", *_messages([])]
    return "\n".join([*lines, ""])


def _messages(rules: list[Rule]) -> list[str]:
    """The rules for one number of ranks, by size: size, algorithm, fan-out, segment."""
    rows = [(0, *OWN_DECISION, "Open MPI decides")]
    rows += [(rule.total, rule.algorithm, rule.fanout, rule.segment, rule.comment) for rule in rules]
    if rules:
        rows.append((2 * rules[-1].total, *OWN_DECISION, "not measured"))
    lines = [f"{len(rows)} # message sizes: bytes, algorithm, fan-out, segment size"]
    for *numbers, comment in rows:
        note = " ".join(str(comment).split())
        lines.append(" ".join(map(str, numbers)) + (f" # {note}" if note else ""))
    return lines
