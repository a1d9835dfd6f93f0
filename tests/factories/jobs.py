"""Jobs of a cluster by the scenario of the thesis [robert-2021, section 7.5].

Users run applications of a common pool. A user puts an adjective before the name of a job in two of three cases and the
number of nodes after it in one of three. The folder of the program has a time stamp.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from service.matching.linkage.job import Job

ADJECTIVES, ROOTS, _KINDS = (
    words.split()
    for words in (
        (
            "angry bold brave bright busy calm clever cold cool crazy dark deep eager early fancy fast fierce gentle "
            "giant glad golden grand green happy heavy hidden hungry icy jolly keen kind large lazy little lonely "
            "loud lucky mad mighty modern noble odd old pale patient proud quick quiet rapid red rough round sharp "
            "shiny silent silly slow small smooth soft"
        ),
        (
            "ant bat bear bee boar cat cod cow crab crow deer dog dove duck eel elk emu ewe finch flea fly fox frog "
            "gnat goat goose gull hare hawk hen heron horse ibis jay kite koala lark lion llama lynx mole moose moth "
            "mouse newt otter owl ox panda pig pike pony puma quail ram rat raven seal shark sheep shrew skunk sloth "
            "slug snail snake squid stork swan swift tapir tern tiger toad trout viper vole wasp whale wolf wombat "
            "worm wren yak zebra"
        ),
        "bench climate cfd check crack dam eddy field flow fluid fold grid heat ice jet lattice md mesh ocean",
    )
)
NODES = (1, 1, 2, 2, 4, 4, 8, 16, 32, 64)
CLUSTER_NODES = 64
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Scenario:
    """Users with their applications; user number i submits about 1 / (i + 1) as many jobs as the first, plus a base."""

    users: int
    applications: int
    seed: int = 0

    def labelled(self, count: int, draw: int = 0) -> Iterator[tuple[Job, str]]:
        """Make jobs, each with its application. `draw` gives other jobs of the same users."""
        pool = [root + kind for kind in ("", *("_" + kind for kind in _KINDS)) for root in ROOTS][: self.applications]
        source = random.Random(self.seed)
        used = [
            [(source.choice(pool), source.randrange(10**9)) for _ in range(source.randint(5, 25))]
            for _ in range(self.users)
        ]
        weights = [1 / (user + 1) + 0.01 for user in range(self.users)]
        source = random.Random(f"{self.seed} {draw}")
        for user in source.choices(range(self.users), weights, k=count):
            application, stamp = source.choice(used[user])
            yield self._job(source, f"user{_letters(user)}", application, stamp), application

    def jobs(self, count: int, draw: int = 0) -> Iterator[Job]:
        """Make jobs without their applications."""
        return (job for job, _ in self.labelled(count, draw))

    @staticmethod
    def _job(source: random.Random, user: str, application: str, stamp: int) -> Job:
        nodes = source.choice(NODES)
        name = application
        if source.random() < 2 / 3:
            name = f"{source.choice(ADJECTIVES)}_{name}"
        if source.random() < 1 / 3:
            name = f"{name}_{nodes}"
        line = f"sbatch /home/{user}/{application}_{stamp}/sbatch"
        if source.random() < 1 / 3:
            line += f" --size {source.choice((1, 2, 4, 8))}k --threads={source.choice((1, 2, 4))}"
            if source.random() < 1 / 2:
                line += f" --seed {source.randrange(10_000)}"
        time = BEGIN + timedelta(seconds=source.randrange(365 * 86_400))
        return Job(user, name, "sbatch", line, time, nodes)


def _letters(number: int) -> str:
    """Return a number in letters, since digits separate the parts of a path."""
    text = ""
    while True:
        number, rest = divmod(number, 26)
        text = chr(ord("a") + rest) + text
        if not number:
            return text
