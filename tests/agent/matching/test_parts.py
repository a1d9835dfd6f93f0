"""The parts of application matching that need no agent: messages, rules, cache, spool, ends of jobs."""

import asyncio
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from tests.agent.test_policy import policy_file
from trimtab_agent.config import Config
from trimtab_agent.errors import ConfigError
from trimtab_agent.matching import job_ends, protocol
from trimtab_agent.matching.cache import Cache
from trimtab_agent.matching.job_ends import end_of, seconds_of
from trimtab_agent.matching.protocol import MalformedError
from trimtab_agent.matching.request import LONGEST_COMMAND, LONGEST_NAME, Request, command_line
from trimtab_agent.matching.server import user_name
from trimtab_agent.matching.spool import LONGEST, Spool
from trimtab_agent.matching_rules import ComponentUse, MatchingRules
from trimtab_agent.policy import Policy, load
from trimtab_agent.runners import slurm_client
from trimtab_agent.runners.slurm_states import STATES
from trimtab_agent.submissions import Considered, Decision, End, Job, Match, Submission

JOB = Job("ann", "ant", "ant.sh", "sbatch ant.sh", 1000.0)
MATCH = Match("rec1", "solver", "", "main", {"threads": 8}, 0.9)


@pytest.mark.parametrize("value", ["", "plain", "two words ", "a\nb", "a\\nb", "\\", "\\\\n\n\\", "é\udcff"])
def test_messages_survive_the_way(value: str) -> None:
    verb, pairs = protocol.read(protocol.write("ask", [("key", value), ("key", "x")]))
    assert (verb, pairs) == ("ask", [("key", value), ("key", "x")])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"end\n",
        b"trimtab-match 1\n",
        b"trimtab-match 1\nkey value\n",
        b"trimtab-match 1\nkey\nend\n",
        b"x\ny\nend\n",
    ],
)
def test_other_texts_are_no_messages(data: bytes) -> None:
    with pytest.raises(MalformedError):
        protocol.read(data)


def test_a_request_is_bounded_and_clean() -> None:
    pairs = [
        ("kind", "srun"),
        ("name", "n" * 999),
        ("program", "a\udcff\0"),
        ("arg", "x" * 9999),
        ("export", "all, A=1,B"),
    ]
    request = Request.of(pairs)
    assert (len(request.name), request.program) == (LONGEST_NAME, "a?")
    assert len(command_line(request.argv)) == LONGEST_COMMAND
    assert request.exported == (True, frozenset({"A"}))
    assert Request.of([("kind", "wrap")]).exported == (True, frozenset())


def test_the_default_rules() -> None:
    assert MatchingRules().mode == "dry_run"
    assert (MatchingRules().control_share, MatchingRules().explore) == (0.05, 0.0)
    assert MatchingRules().use_of("any") == ComponentUse()


def test_an_agent_shows_its_rules_for_jobs_only_with_a_socket(tmp_path: Path) -> None:
    rules = MatchingRules("apply", ("ann", "proj-*"), components={}, control_share=0.1, explore=0.02, cluster="hpc1")
    config = Config("server", tmp_path, "agent", policy=Policy(batch_scripts=False, matching=rules))
    assert config.described_rules() == {"batch_scripts": "none"}
    assert replace(config, match_socket=tmp_path / "s").described_rules() == {
        "batch_scripts": "none",
        "matching.mode": "apply",
        "matching.users": "ann, proj-*",
        "matching.components": "none",
        "matching.control_share": "0.1",
        "matching.explore": "0.02",
        "matching.cluster": "hpc1",
    }
    many = MatchingRules(users=tuple(f"user{number}" for number in range(5000)))
    assert len(many.describe()["matching.users"]) <= 2000


def test_rules_of_a_policy(tmp_path: Path) -> None:
    text = """
matching:
  mode: apply
  users: ["ann", "proj-*"]
  partitions: [main]
  components: {sro: {preload: [/opt/x.so], environment: {A: "1"}, omit: [B], workload: [size]}, plain: {}}
  options: [hint]
  control_share: 0
  timeout: 0.2
  cached_answers: 5
  cache_hours: 1
  cluster: hpc1
"""
    rules = load(policy_file(tmp_path, text)).matching
    assert (rules.mode, rules.control_share, rules.timeout, rules.cached_answers) == ("apply", 0.0, 0.2, 5)
    assert [rules.allow_user(one) for one in ("ann", "proj-7", "bob")] == [True, True, False]
    assert [rules.allow_partition(one) for one in ("main", "")] == [True, False]
    assert rules.use_of("sro") == ComponentUse(("/opt/x.so",), {"A": "1"}, ("B",), ("size",))
    assert rules.use_of("other") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mode: on", "matching.mode: 'on' is not one of off, dry_run, apply"),
        ("modus: apply", "matching.modus: unknown key; did you mean 'mode'?"),
        ("explore: 0.11", "matching.explore: 0.11 is not a share from 0 to 0.1"),
        ("explore: -0.01", "matching.explore: -0.01 is not a share from 0 to 0.1"),
        ("control_share: 1.5", "matching.control_share: 1.5 is not a share from 0 to 1"),
        ("timeout: 60", "matching.timeout: 60 is above the maximum 10 s"),
        ("cached_answers: 1000000", "matching.cached_answers: 1000000 is above the maximum 100000"),
        ("components: {a: {preload: [lib.so]}}", "components.a.preload: 'lib.so' is not an absolute path"),
        ("components: {a: {preloads: []}}", "components.a.preloads: unknown key; did you mean 'preload'?"),
        ("users: ann", "matching.users: must be a list of strings"),
    ],
)
def test_errors_of_rules(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(policy_file(tmp_path, f"matching: {{{text}}}"))
    assert words in str(caught.value)


def test_the_cache_is_bounded_in_number_and_age() -> None:
    now = [0.0]
    cache = Cache(2, 10.0, lambda: now[0])
    jobs = [Job("ann", f"job{number}", "x", "x", 0.0) for number in range(3)]
    for job in jobs[:2]:
        cache.put(job, [MATCH])
    # The time of a submission does not matter; a use keeps an answer longer than others.
    assert cache.get(Job("ann", "job0", "x", "x", 99.0)) == [MATCH]
    cache.put(jobs[2], [MATCH])
    assert [bool(cache.get(job)) for job in jobs] == [True, False, True]
    now[0] = 10.1
    assert [bool(cache.get(job)) for job in jobs] == [False, False, False]


def submission(number: int, **changed: object) -> Submission:
    considered = [Considered("rec1", 0.9, Decision.APPLIED)]
    return Submission(f"{number:032x}", 7, JOB, considered, **changed)  # type: ignore[arg-type]


def test_the_spool_survives_and_is_bounded(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most=3)
    for number in range(4):
        spool.put(submission(number, job_id=str(number), tasks={"0_1": End("completed", 1.0, 2.0)}))
    spool.put(replace(spool.running()[1], end=End("failed", 3.0, 4.0), confirmed=True))
    (tmp_path / f"{9:032x}.json").write_text("{")
    (tmp_path / f"{8:032x}.json").write_text(json.dumps([]))
    again = Spool(tmp_path, most=3)
    assert sorted(one.job_id for one in again.running()) == ["1", "3"]
    (ended,) = again.finished(10)
    tasks = {"0_1": End("completed", 1.0, 2.0)}
    assert ended == submission(2, job_id="2", tasks=tasks, end=End("failed", 3.0, 4.0), confirmed=True)
    assert len(list(tmp_path.iterdir())) == 3


def test_old_submissions_without_an_end_are_removed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(submission(1))
    spool.put(submission(2, end=End("completed", 1.0, 2.0)))
    spool.sweep(JOB.submitted_at + LONGEST - 1)
    assert spool.get(f"{1:032x}", 7) is not None
    spool.sweep(JOB.submitted_at + LONGEST + 1)
    assert spool.get(f"{1:032x}", 7) is None
    assert len(spool.finished(10)) == 1


def test_only_the_first_job_id_and_end_count(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(submission(1))
    spool.submitted(f"{1:032x}", 7, "5")
    spool.submitted(f"{1:032x}", 7, "6")
    assert [one.job_id for one in spool.running()] == ["5"]
    spool.put(submission(2, kind="wrap"))
    spool.ended(f"{2:032x}", 7, End("completed", 1.0, 0.0))
    spool.ended(f"{2:032x}", 7, End("failed", 2.0, 0.0), confirmed=True)
    (ended,) = spool.finished(1)
    assert (ended.end, ended.confirmed) == (End("completed", 1.0, 0.0), False)


def test_a_user_ends_no_job_of_a_scheduler_and_a_command_has_none(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(submission(1))
    spool.put(submission(2, kind="wrap"))
    spool.ended(f"{1:032x}", 7, End("completed", 100.0, 0.0), confirmed=True)
    spool.submitted(f"{2:032x}", 7, "5")
    assert spool.finished(9) == []
    assert spool.running() == []


def test_a_file_of_an_earlier_version_is_read() -> None:
    known = json.loads(submission(1, job_id="5").to_json())
    for name in ("kind", "confirmed"):
        del known[name]
    assert Submission.from_json(json.dumps(known)).has_scheduler
    assert not Submission.from_json(json.dumps({**known, "job_id": ""})).has_scheduler


class Scheduler:
    """A Slurm of which only squeue and sacct are needed: the lines that they print."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.squeue: list[str] = []
        self.sacct: list[str] = []
        monkeypatch.setattr(slurm_client, "call", self._call)

    async def _call(self, program: str, *arguments: str) -> str:
        return "\n".join(getattr(self, program))


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    return Scheduler(monkeypatch)


def local(moment: float) -> str:
    """Return a time as Slurm prints it."""
    return datetime.fromtimestamp(moment).isoformat(timespec="seconds")  # noqa: DTZ006 - in this machine's zone


def looked_at(spool: Spool) -> list[Submission]:
    """Look once at the jobs, and return the submissions with an end."""
    asyncio.run(job_ends._look(spool.running(), spool))
    return list(spool.finished(99))


AT = JOB.submitted_at


def test_the_scheduler_says_how_a_job_ended_and_on_how_many_nodes(tmp_path: Path, scheduler: Scheduler) -> None:
    spool = Spool(tmp_path)
    spool.put(submission(1, job_id="5"))
    scheduler.squeue = [f"5|5|COMPLETED|1:40|7|{local(AT + 1)}|3"]
    (ended,) = looked_at(spool)
    assert ended.end is not None
    assert (ended.end.state, ended.end.seconds, ended.job.nodes, ended.confirmed) == ("completed", 100.0, 3, True)


@pytest.mark.parametrize(
    ("uid", "submitted"),
    [pytest.param(8, AT + 1, id="of another user"), pytest.param(7, AT - 3600, id="submitted before the question")],
)
def test_a_job_that_cannot_be_the_submission_s_is_no_end_of_it(
    tmp_path: Path, scheduler: Scheduler, uid: int, submitted: float
) -> None:
    for place, source in enumerate(("squeue", "sacct")):
        spool = Spool(tmp_path / source)
        spool.put(submission(1, job_id="5"))
        rows = [f"5|5|COMPLETED|1:40|{uid}|{local(submitted)}|3", f"COMPLETED|100|{uid}|{local(submitted)}|3"]
        scheduler.squeue, scheduler.sacct = [rows[0]] if source == "squeue" else [], rows[1:]
        assert looked_at(spool) == []
        assert spool.running() == [], place


def test_accounting_says_the_same_of_a_job_that_was_forgotten(tmp_path: Path, scheduler: Scheduler) -> None:
    spool = Spool(tmp_path)
    spool.put(submission(1, job_id="5"))
    scheduler.sacct = [f"CANCELLED by 7|100|7|{local(AT + 1)}|3"]
    (ended,) = looked_at(spool)
    assert ended.end is not None
    assert (ended.end.state, ended.end.seconds, ended.job.nodes, ended.confirmed) == ("cancelled", 100.0, 3, True)


def test_a_job_is_the_end_of_one_submission(tmp_path: Path, scheduler: Scheduler) -> None:
    """A user asks eight times and names the same job for each answer."""
    spool = Spool(tmp_path)
    scheduler.squeue = [f"5|5|COMPLETED|1:40|7|{local(AT + 1)}|3"]
    for number in range(8):
        spool.put(submission(number, job_id="5"))
    assert len(looked_at(spool)) == 1
    # Also after the report and a restart.
    for number in range(8, 10):
        spool = Spool(tmp_path)
        spool.put(submission(number, job_id="5"))
        assert len(looked_at(spool)) == 1
    spool.remove(spool.finished(1)[0].id)
    spool.put(submission(10, job_id="5"))
    assert looked_at(spool) == []


def test_another_user_takes_no_job_away_from_its_submission(tmp_path: Path, scheduler: Scheduler) -> None:
    """Numbers of jobs can be guessed, so the other user may name it first."""
    spool = Spool(tmp_path)
    spool.put(replace(submission(1, job_id="5"), uid=8))
    spool.put(submission(2, job_id="5"))
    scheduler.squeue = [f"5|5|RUNNING|0:10|7|{local(AT + 1)}|3"]
    assert looked_at(spool) == []
    scheduler.squeue = [f"5|5|COMPLETED|1:40|7|{local(AT + 1)}|3"]
    assert [one.uid for one in looked_at(spool)] == [7]


@pytest.mark.parametrize(
    ("text", "seconds"), [("0:01", 1), ("59:59", 3599), ("1:00:01", 3601), ("2-01:00:00", 176400), ("INVALID", 0)]
)
def test_elapsed_times_of_slurm(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_every_state_of_slurm_is_an_end_or_none() -> None:
    ends = {state: end_of(state, 1.0) for state in STATES}
    assert {state for state, end in ends.items() if end and end.state == "completed"} == {"COMPLETED"}
    assert {state for state, end in ends.items() if end and end.state == "cancelled"} == {"CANCELLED"}
    assert {"FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"} <= {
        state for state, end in ends.items() if end and end.state == "failed"
    }
    assert all(ends[state] is None for state in ("PENDING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED"))
    assert end_of("A_LATER_STATE", 1.0) is None


def test_a_user_without_a_name_has_a_number() -> None:
    assert user_name(0) == "root"
    assert user_name(4_000_000) == "4000000"
