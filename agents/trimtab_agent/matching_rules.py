"""The administrator's rules for application matching: the key `matching` of the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from textwrap import shorten
from typing import Literal, cast

from trimtab_components.pairs import MOST_EXPLORED
from trimtab_components.reader import Table

KEYS = (
    "mode",
    "users",
    "partitions",
    "components",
    "options",
    "control_share",
    "explore",
    "timeout",
    "cached_answers",
    "cache_hours",
    "cluster",
    "trust_commands",
)
COMPONENT_KEYS = ("preload", "environment", "omit", "workload")
MODES = ("off", "dry_run", "apply")
# A client waits half a second for the agent unless its administrator gives it more time.
LONGEST_TIMEOUT = 10.0
MOST_CACHED = 100_000
# The service accepts descriptions of up to 2,000 characters.
LONGEST_SHOWN = 1000


@dataclass(frozen=True)
class ComponentUse:
    """How a component is installed on the cluster.

    `preload` replaces the component's libraries, `environment` its variables of the same names, and the variables in
    `omit` are left out. `workload` names parameters that describe what the trials ran, which a job brings with it.
    """

    preload: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    omit: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()


@dataclass(frozen=True)
class MatchingRules:
    """The rules; None means that everything is allowed. Users and partitions are shell patterns. `timeout` is in
    seconds."""

    mode: Literal["off", "dry_run", "apply"] = "dry_run"
    users: tuple[str, ...] | None = None
    partitions: tuple[str, ...] | None = None
    components: Mapping[str, ComponentUse] | None = None
    # options of the scheduler that may be set
    options: tuple[str, ...] = ()
    control_share: float = 0.05
    # the share of matched jobs that may get a candidate of a live study in place of the proven settings
    explore: float = 0.0
    timeout: float = 0.3
    cached_answers: int = 1000
    cache_hours: float = 24.0
    # the cluster's name; "": as the scheduler says, or this machine's name
    cluster: str = ""
    # whether the run times that wrapped commands report count for a record and against it
    trust_commands: bool = False

    def allow_user(self, user: str) -> bool:
        """Return whether this user's jobs are matched."""
        return _allows(self.users, user)

    def allow_partition(self, partition: str) -> bool:
        """Return whether jobs of this partition are matched."""
        return _allows(self.partitions, partition)

    def use_of(self, component: str) -> ComponentUse | None:
        """Return how a component is used for jobs; None if it is not."""
        if self.components is None:
            return ComponentUse()
        return self.components.get(component)

    def describe(self) -> dict[str, str]:
        """Return the rules that decide about a job, as text by name."""
        lists = {"users": self.users, "partitions": self.partitions}
        if self.components is not None:
            lists["components"] = tuple(self.components)
        found = {name: ", ".join(values) or "none" for name, values in lists.items() if values is not None}
        found |= {"mode": self.mode, "control_share": f"{self.control_share:g}"}
        if self.explore:
            found["explore"] = f"{self.explore:g}"
        if self.cluster:
            found["cluster"] = self.cluster
        return {f"matching.{name}": shorten(text, LONGEST_SHOWN, placeholder=" ...") for name, text in found.items()}


def read(table: Table) -> MatchingRules:
    """Return the rules in the table. It records errors in the table's reader."""
    table.allow(KEYS)
    default = MatchingRules()
    share = table.number("control_share", default.control_share)
    if not 0 <= share <= 1:
        table.fault("control_share", f"{share!r} is not a share from 0 to 1")
    explore = table.number("explore", default.explore)
    if not 0 <= explore <= MOST_EXPLORED:
        table.fault("explore", f"{explore!r} is not a share from 0 to {MOST_EXPLORED:g}")
    timeout = table.number("timeout", default.timeout, above=0)
    if timeout > LONGEST_TIMEOUT:
        table.fault("timeout", f"{timeout!r} is above the maximum {LONGEST_TIMEOUT:g} s")
    cached = table.integer("cached_answers", default.cached_answers, minimum=0)
    if cached > MOST_CACHED:
        table.fault("cached_answers", f"{cached} is above the maximum {MOST_CACHED}")
    return MatchingRules(
        mode=cast(Literal["off", "dry_run", "apply"], table.choice("mode", MODES, default.mode)),
        users=table.texts("users") if "users" in table else None,
        partitions=table.texts("partitions") if "partitions" in table else None,
        components=_components(table) if "components" in table else None,
        options=table.texts("options"),
        control_share=share,
        explore=explore,
        timeout=timeout,
        cached_answers=cached,
        cache_hours=table.number("cache_hours", default.cache_hours, above=0),
        cluster=table.text("cluster"),
        trust_commands=table.flag("trust_commands", default.trust_commands),
    )


def _components(table: Table) -> dict[str, ComponentUse]:
    found = {}
    for name, use in table.tables("components"):
        use.allow(COMPONENT_KEYS)
        preload = use.texts("preload") if "preload" in use else None
        for library in preload or ():
            if not library.startswith("/") or ":" in library or " " in library:
                use.fault("preload", f"{library!r} is not an absolute path without blanks and colons")
        found[name] = ComponentUse(
            preload, use.mapping_of_texts("environment"), use.texts("omit"), use.texts("workload")
        )
    return found


def _allows(patterns: Sequence[str] | None, value: str) -> bool:
    return patterns is None or any(fnmatchcase(value, pattern) for pattern in patterns)
