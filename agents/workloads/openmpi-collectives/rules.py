"""Write the results as a file of dynamic rules, as Open MPI reads it:

    mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...

The file is a sequence of whole numbers; `#` begins a comment. It has three levels: collectives by number, then numbers
of ranks, then message sizes. Each entry is valid from its own number up to the next one's. Open MPI also uses the first
entry for everything below it, and the last one for everything above it. So each level here begins with 0 and ends above
the measured cases with algorithm 0, by which Open MPI decides itself: a case that was not measured has no rule.

Open MPI prints no message about a file that it cannot read, and goes on without it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

# Open MPI's numbers, in the order of its list of collectives, which has not changed since 1.0 for these.
COLLECTIVE_NUMBERS = {"allreduce": 2, "bcast": 7, "gather": 9, "reduce": 11}
OWN_DECISION = (0, 0, 0)


@dataclass(frozen=True)
class Rule:
    """The rule of one collective for messages of `size` bytes a rank or more, among `ranks` ranks or more.

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
        """Return the size by which Open MPI finds the rule: for gather, what the root receives from all ranks."""
        return self.size * self.ranks if self.collective == "gather" else self.size


def render(rules: Iterable[Rule]) -> str:
    """Return the file's text.

    Between two measured sizes, the rule of the smaller one is valid, and likewise between numbers of ranks. From twice
    the largest size on, and from one rank more than the largest number, there is no rule.

    Raises:
        ValueError: there are two rules for one case, or an unknown collective.
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
    """Return the lines for one number of ranks, by size: size, algorithm, fan-out, segment."""
    rows = [(0, *OWN_DECISION, "Open MPI decides")]
    rows += [(rule.total, rule.algorithm, rule.fanout, rule.segment, rule.comment) for rule in rules]
    if rules:
        rows.append((2 * rules[-1].total, *OWN_DECISION, "not measured"))
    lines = [f"{len(rows)} # message sizes: bytes, algorithm, fan-out, segment size"]
    for *numbers, comment in rows:
        note = " ".join(str(comment).split())
        lines.append(" ".join(map(str, numbers)) + (f" # {note}" if note else ""))
    return lines
