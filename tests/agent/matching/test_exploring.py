"""Jobs of a live study at the agent: the share of them, their owners' opt-outs, and what their owners are told."""

import asyncio
import random
from typing import Any, cast

import pytest

from tests.agent.matching.conftest import POLICY, Matching
from trimtab_agent._gen import matching_pb2
from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import ServiceAwayError
from trimtab_agent.matching.exploring import Explorer
from trimtab_agent.messages import of_value
from trimtab_agent.runners import slurm_options
from trimtab_agent.submissions import Explored, Job, Match

EXPLORE = POLICY.replace("control_share: 0", "control_share: 0\n  explore: 0.1")
MATCH = Match("rec1", "solver", "", "main", {"threads": 8}, 0.93)
LIMIT = 600.0


class Service:
    """A service that gives places in pairs at random, and is away at times."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.candidates = 0
        self.waiting: dict[tuple[str, int], bool] = {}

    async def explore(self, record: str, submission: str, job: Job, *, begin: bool, **_: Any) -> Explored:
        kind = (job.user, job.nodes)
        if self.random.random() < 0.1:
            raise ServiceAwayError("Explore", "unavailable", "away")
        if kind in self.waiting:
            candidate, waits = not self.waiting.pop(kind), False
        elif begin and self.random.random() < 0.8:
            candidate, waits = self.random.random() < 0.5, True
            self.waiting[kind] = candidate
        else:
            return Explored("", 0, False, {})
        self.candidates += candidate
        return Explored("study", 1, candidate, {"threads": 4}, waits)


@pytest.mark.parametrize("seed", range(20))
def test_the_share_is_never_exceeded(seed: int) -> None:
    """It holds for all answers of the service, and after each new start of the agent."""
    draw = random.Random(seed)
    share = draw.choice([0.01, 0.02, 0.03, 0.05, 0.07, 0.1])
    service = Service(seed)
    explorer = Explorer(share, cast(ControlPlane, service))

    async def submit() -> None:
        nonlocal explorer
        for number in range(1, 1501):
            if draw.random() < 0.005:
                explorer = Explorer(share, cast(ControlPlane, service))
            job = Job(draw.choice("abc"), "job", "job.sh", "job.sh", 0.0, draw.choice([1, 2]))
            await explorer.ask(f"{number:032x}", MATCH, job, LIMIT, 10.0)
            assert service.candidates <= share * number

    asyncio.run(submit())
    assert service.candidates > 0


def test_without_a_share_the_service_is_never_asked() -> None:
    explorer = Explorer(0.0, cast(ControlPlane, None))
    job = Job("ann", "job", "job.sh", "job.sh", 0.0)
    assert all(asyncio.run(explorer.ask("0" * 32, MATCH, job, LIMIT, 1.0)) is None for _ in range(50))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("5:30", 330),
        ("01:00:00", 3600),
        ("1-00:00:00", 86400),
        ("1-12", 129600),
        ("2-00:30", 174600),
        ("UNLIMITED", 0),
        ("infinite", 0),
        ("n/a", 0),
        ("", 0),
    ],
)
def test_time_limits_of_slurm(text: str, seconds: float) -> None:
    assert (slurm_options.seconds(text) or 0.0) == seconds


def place(*, candidate: bool, waits: bool = False, **params: Any) -> matching_pb2.ExploreResponse:
    values = {name: of_value(value) for name, value in params.items()}
    return matching_pb2.ExploreResponse(study="nightly", trial=7, candidate=candidate, params=values, waits=waits)


@pytest.fixture
def submitted(matching: Matching) -> Matching:
    """An agent at which nine jobs have been submitted, so that the tenth one may begin a pair."""
    matching.start(EXPLORE)
    for _ in range(9):
        assert matching.ask(time="10:00")["$SOLVER_THREADS"] == "8"
    assert matching.far_side.explored == []
    return matching


def test_a_pair_of_jobs(submitted: Matching) -> None:
    far_side = submitted.far_side
    far_side.places[:] = [place(candidate=True, waits=True, threads=4), place(candidate=False)]
    answer = submitted.ask(time="10:00", nodes="2")
    assert answer["$SOLVER_THREADS"] == "4"
    assert answer["comment"] == "trimtab:rec1:0.93:nightly/7"
    assert answer["note"] == (
        "record rec1 resembles the job (score 0.93); trial 7 of live study 'nightly' tries other settings;"
        " TRIMTAB_MATCH=proven prevents this"
    )
    assert submitted.ask(time="10:00", nodes="3")["$SOLVER_THREADS"] == "8", "a job of another kind"
    assert submitted.ask(time="10:00", nodes="2")["$SOLVER_THREADS"] == "8"
    first, second = far_side.explored
    assert (first.record, first.begin, first.share, first.limit_seconds) == ("rec1", True, 0.1, 600)
    assert (second.begin, second.job.nodes, second.submission != first.submission) == (False, 2, True)
    assert first.submission == answer["submission"]
    assert "decision=explored" in submitted.agent.log


def test_owners_arrays_and_commands_are_left_out(submitted: Matching) -> None:
    submitted.far_side.places[:] = [place(candidate=True, threads=4)]
    for given in ({"settings": "proven"}, {"option": "array"}, {"kind": "wrap"}):
        assert submitted.ask(**given)["$SOLVER_THREADS"] == "8"
    assert submitted.far_side.explored == []
    assert submitted.ask()["$SOLVER_THREADS"] == "4", "the next job takes the turn"
    assert submitted.far_side.explored[0].limit_seconds == 0, "no limit is known"


def test_a_candidate_that_cannot_be_applied_here_is_not(submitted: Matching) -> None:
    """It reaches the program by a flag, so the job has the proven settings and the service is told so."""
    submitted.far_side.places[:] = [place(candidate=True, threads=4, unroll=True)]
    answer = submitted.ask()
    assert (answer["$SOLVER_THREADS"], answer["comment"]) == ("8", "trimtab:rec1:0.93")
    assert "a candidate is not applied" in submitted.agent.log
