"""Requests of submission hosts, read from pairs of the line protocol."""

import shlex
from dataclasses import dataclass
from typing import Self

from trimtab_agent.matching.protocol import MalformedError, Pairs

KINDS = ("sbatch", "srun", "salloc", "wrap")
# The service's maximum characters of a name and of a command line.
LONGEST_NAME = 255
LONGEST_COMMAND = 4096
MOST_NODES = 1_000_000


@dataclass(frozen=True)
class Request:
    """A question about a job.

    `present` are the names of the environment variables that the submission already has, `chosen` the long names of the
    scheduler's options that the user has set, `export` and `time` the values of `--export` and `--time` ("" without).
    `proven`: its owner allows proven settings only.
    """

    kind: str
    name: str
    program: str
    argv: tuple[str, ...]
    nodes: int
    cluster: str
    partition: str
    export: str
    present: frozenset[str]
    chosen: frozenset[str]
    time: str = ""
    proven: bool = False

    @classmethod
    def of(cls, pairs: Pairs) -> Self:
        """Return the request in the pairs.

        Raises:
            MalformedError: a value is not allowed.
        """
        single = dict(pairs)
        kind = single.get("kind", "")
        if kind not in KINDS:
            raise MalformedError(f"kind: {kind[:20]!r} is not one of {', '.join(KINDS)}")
        nodes = single.get("nodes", "1")
        if not nodes.isdecimal() or len(nodes) > 7 or not 1 <= int(nodes) <= MOST_NODES:
            raise MalformedError(f"nodes: {nodes[:20]!r} is not a number from 1 to {MOST_NODES}")
        program = _name(single.get("program", ""))
        return cls(
            kind=kind,
            name=_name(single.get("name", program)),
            program=program,
            argv=tuple(_clean(value) for key, value in pairs if key == "arg"),
            nodes=int(nodes),
            cluster=_name(single.get("cluster", "")),
            partition=_name(single.get("partition", "")),
            export=single.get("export", ""),
            present=frozenset(value for key, value in pairs if key == "present"),
            chosen=frozenset(value for key, value in pairs if key == "option"),
            time=single.get("time", ""),
            proven=single.get("settings", "") == "proven",
        )

    @property
    def has_scheduler(self) -> bool:
        """True if a scheduler takes the job."""
        return self.kind != "wrap"

    @property
    def may_explore(self) -> bool:
        """True if it may be a job of a pair. The tasks of an array would all get the same settings."""
        return self.has_scheduler and not self.proven and "array" not in self.chosen

    @property
    def exported(self) -> tuple[bool, frozenset[str]]:
        """Return whether `--export` passes the whole environment on, and the names of the variables that it sets."""
        if not self.export:
            return True, frozenset()
        items = [item.strip() for item in self.export.split(",")]
        return any(item.upper() == "ALL" for item in items), frozenset(
            item.partition("=")[0] for item in items if "=" in item
        )


def _name(text: str) -> str:
    return _clean(text)[:LONGEST_NAME]


def _clean(text: str) -> str:
    """Return the text without what a message of the service cannot hold: NUL, and bytes that are not UTF-8."""
    return text.encode(errors="replace").decode().replace("\0", "")


def command_line(argv: tuple[str, ...]) -> str:
    """Return the arguments as one text of bounded length."""
    return shlex.join(argv)[:LONGEST_COMMAND]
