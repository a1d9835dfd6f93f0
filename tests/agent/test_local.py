"""The local runner's own: CPUs, control groups, memory. What it has in common with every runner is tested in
tests/contract/runners/."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.factories.patience import PATIENCE, wait_for, wait_for_async
from trimtab_agent.errors import ConfigError
from trimtab_agent.runners.base import BuildSpec, JobResult, JobSpec, stored_result
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.cgroups import Cgroups
from trimtab_agent.runners.cpus import Cpus, cores, share_out
from trimtab_agent.runners.local import LocalRunner
from trimtab_agent.supervisor import cgroup

MIB = 1 << 20
# touches every page of so many MiB
EAT = "import sys; eaten = bytearray(int(sys.argv[1]) << 20); eaten[::4096] = b'x' * len(eaten[::4096]); print('ate')"
# which CPUs it and a thread of it may use
WHERE = "import os; print('cpus', *sorted(os.sched_getaffinity(0)))"


def sets(*cpus: Sequence[int]) -> list[Cpus]:
    return [frozenset(one) for one in cpus]


# -- which CPUs


@pytest.fixture
def topology(tmp_path: Path) -> Callable[..., Path]:
    """/sys/devices/system/cpu of another machine."""

    def make(siblings: dict[int, str], packages: dict[int, int] | None = None) -> Path:
        for cpu, threads in siblings.items():
            folder = tmp_path / f"cpu{cpu}" / "topology"
            folder.mkdir(parents=True)
            (folder / "thread_siblings_list").write_text(threads + "\n")
            if packages:
                (folder / "physical_package_id").write_text(f"{packages[cpu]}\n")
        return tmp_path

    return make


def test_cores_hold_their_hyper_threads(topology: Callable[..., Path]) -> None:
    place = topology({0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7", 4: "0,4", 5: "1,5", 6: "2,6", 7: "3,7"})
    assert cores(frozenset(range(8)), place) == sets([0, 4], [1, 5], [2, 6], [3, 7])
    assert cores(frozenset([1, 4, 5]), place) == sets([4], [1, 5]), "those that are not allowed are left out"


def test_cores_of_a_package_stay_together(topology: Callable[..., Path]) -> None:
    place = topology({n: f"{n - n % 2}-{n - n % 2 + 1}" for n in range(8)}, {n: n // 2 % 2 for n in range(8)})
    assert cores(frozenset(range(8)), place) == sets([0, 1], [4, 5], [2, 3], [6, 7])


def test_without_topology_each_cpu_is_a_core(tmp_path: Path) -> None:
    assert cores(frozenset([3, 1]), tmp_path) == sets([1], [3])


def test_this_machines_cores_are_all_its_cpus() -> None:
    allowed = frozenset(os.sched_getaffinity(0))
    known = cores(allowed)
    assert frozenset().union(*known) == allowed
    assert sum(len(core) for core in known) == len(allowed)


FOUR = sets([0, 4], [1, 5], [2, 6], [3, 7])
ALL = frozenset(range(8))


@pytest.mark.parametrize(
    ("slots", "count", "trials", "alone", "spare"),
    [
        (1, None, [ALL], ALL, ALL),
        (2, None, sets([0, 4, 1, 5], [2, 6, 3, 7]), ALL, ALL),
        (3, None, FOUR[:3], ALL, FOUR[3]),
        (1, 1, FOUR[:1], FOUR[0], ALL - FOUR[0]),
        (2, 1, FOUR[:2], FOUR[0], FOUR[2] | FOUR[3]),
        (2, 2, sets([0, 4, 1, 5], [2, 6, 3, 7]), FOUR[0] | FOUR[1], ALL),
        (2, 0, [ALL, ALL], ALL, ALL),
    ],
)
def test_shares(slots: int, count: int | None, trials: list[Cpus], alone: Cpus, spare: Cpus) -> None:
    shares = share_out(slots, count, FOUR)
    assert (list(shares.trials), shares.alone, shares.spare, shares.warning) == (trials, alone, spare, "")


def test_more_slots_than_cores() -> None:
    shares = share_out(5, None, FOUR)
    assert list(shares.trials) == [ALL] * 5
    assert shares.warning.startswith("5 slots share 4 cores, so trials disturb each other's timing")
    with pytest.raises(ConfigError, match="--trial-cores 3 with 2 slots needs 6 cores; the agent may use only 4"):
        share_out(2, 3, FOUR)


# -- jobs


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., tuple[Path, JobSpec]]:
    """Makes a job's folder, and its specification."""

    def make(name: str, *command: str, **fields: object) -> tuple[Path, JobSpec]:
        folder = tmp_path / "jobs" / name
        (folder / "work").mkdir(parents=True)
        environment = {"PATH": os.environ["PATH"]}
        spec = JobSpec(
            name=name,
            work=str(folder / "work"),
            cwd=str(folder / "work"),
            command=command,
            env=environment,
            base_env=environment,
            timeout=PATIENCE,
            metrics=[{"name": "seconds", "kind": "wall_time"}],
            required=["seconds"],
            params={},
            python=sys.executable,
            grace=0.3,
        )
        return folder, replace(spec, **fields)  # type: ignore[arg-type]

    return make


async def run(runner: LocalRunner, folder: Path, spec: JobSpec) -> JobResult:
    await runner.submit(folder, spec)
    return await asyncio.wait_for(runner.wait(folder), PATIENCE)


def cpus_told(folder: Path) -> list[list[int]]:
    """Return what WHERE has printed in a job, also in builds and header commands."""
    lines = (folder / "log").read_text().splitlines()
    return [[int(word) for word in line.split()[1:]] for line in lines if line.startswith("cpus")]


@pytest.fixture
def two() -> list[int]:
    """Two CPUs."""
    found = sorted(os.sched_getaffinity(0))
    if len(found) < 2:
        pytest.skip("pinning needs two CPUs")
    return found[:2]


async def test_each_trial_has_its_own_cpus(
    two: list[int], job: Callable[..., tuple[Path, JobSpec]], tmp_path: Path, programs_start: None
) -> None:
    """From build to metric; with as many as may run; and again, when one has ended."""
    runner = LocalRunner(share_out(2, 1, sets(two[:1], two[1:])))
    gate = 'until [ -e "$0" ]; do sleep 0.02; done; exec "$@"'
    jobs = []
    for name in "abc":
        opened = tmp_path / name
        command = ["sh", "-c", gate, str(opened), sys.executable, "-c", WHERE]
        where = [sys.executable, "-c", WHERE]
        entry = str(tmp_path / "builds" / name)
        build = BuildSpec(entry, [where], {"PATH": os.environ["PATH"]}, 30.0, 1 << 30)
        jobs.append((opened, *job(name, *command, header=[where], build=build)))
    for _, folder, spec in jobs[:2]:
        await runner.submit(folder, spec)
    gate_a, folder_a, _ = jobs[0]
    gate_a.touch()
    assert (await asyncio.wait_for(runner.wait(folder_a), PATIENCE)).outcome is Ended.COMPLETED
    await runner.submit(jobs[2][1], jobs[2][2])
    for opened, folder, _ in jobs[1:]:
        opened.touch()
        assert (await asyncio.wait_for(runner.wait(folder), PATIENCE)).outcome is Ended.COMPLETED
    runner.close()
    first, second, third = (cpus_told(folder) for _, folder, _ in jobs)
    assert first == [two[:1]] * 3
    assert second == [two[1:]] * 3
    assert third == [two[:1]] * 3


async def test_a_trial_that_runs_alone_has_all(
    two: list[int], job: Callable[..., tuple[Path, JobSpec]], programs_start: None
) -> None:
    runner = LocalRunner(share_out(2, None, sets(two[:1], two[1:])))
    folder, spec = job("a", sys.executable, "-c", WHERE, exclusive=True)
    await run(runner, folder, spec)
    assert cpus_told(folder) == [two]
    runner.close()


async def test_a_running_trial_keeps_its_cpus_under_a_new_agent(
    two: list[int], job: Callable[..., tuple[Path, JobSpec]], programs_start: None
) -> None:
    shares = share_out(2, 1, sets(two[:1], two[1:]))
    before, after = LocalRunner(shares), LocalRunner(shares)
    folder, spec = job("a", "sleep", "1000")
    await before.submit(folder, spec)
    await after.status(folder)
    other, other_spec = job("b", sys.executable, "-c", WHERE)
    await run(after, other, other_spec)
    assert cpus_told(other) == [two[1:]]
    await after.cancel(folder)
    third, third_spec = job("c", sys.executable, "-c", WHERE)
    await run(after, third, third_spec)
    assert cpus_told(third) == [two[:1]]
    await before.wait(folder)
    before.close()
    after.close()


async def test_a_job_whose_folder_is_gone_ends(
    job: Callable[..., tuple[Path, JobSpec]], tmp_path: Path, programs_start: None
) -> None:
    runner = LocalRunner()
    gate = tmp_path / "gate"
    folder, spec = job("a", "sh", "-c", 'touch begun; until [ -e "$0" ]; do sleep 0.02; done', str(gate))
    await runner.submit(folder, spec)
    waiting = asyncio.create_task(runner.wait(folder))
    await wait_for_async((folder / "work" / "begun").exists)
    folder.rename(folder.with_name("gone"))
    gate.touch()
    assert (await asyncio.wait_for(waiting, PATIENCE)).outcome is Ended.FAILED
    runner.close()


async def test_a_job_that_is_cancelled_while_waiting_for_its_turn(
    job: Callable[..., tuple[Path, JobSpec]], programs_start: None
) -> None:
    runner = LocalRunner()
    (first, spec), (second, exclusive) = job("a", "sleep", "1000"), job("b", "true", exclusive=True)
    await runner.submit(first, spec)
    submitting = asyncio.create_task(runner.submit(second, exclusive))
    await wait_for_async(lambda: runner.waiting(second))
    await runner.cancel(second)
    await submitting
    assert (await runner.wait(second)).outcome is Ended.CANCELLED
    await runner.cancel(first)
    assert (await runner.wait(first)).outcome is Ended.CANCELLED
    runner.close()


async def test_missing_cpus_count_as_a_fault_of_the_machine(
    job: Callable[..., tuple[Path, JobSpec]], programs_start: None
) -> None:
    runner = LocalRunner(share_out(1, 1, sets([1023], [0])))
    folder, spec = job("a", "true")
    result = await run(runner, folder, spec)
    assert result.outcome is Ended.FAILED
    assert "'true' cannot be started: CPUs [1023] cannot be used: Invalid argument" in result.reason
    runner.close()


def test_the_agent_keeps_off_its_trials_cpus(
    two: list[int], agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    component = "name: where\nparameters: {x: {type: int, min: 0, max: 9, default: 1, env: X}}\n"
    component += f"applications: {{main: {{command: [{sys.executable}, -c, {json.dumps(WHERE)}]}}}}\n"
    component += "metrics: {cpu: {type: regex, pattern: 'cpus (\\d+)$'}}\n"
    (agent.components / "where.yaml").write_text(component)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, two)
    try:
        agent.start("--trial-cores", "1")
    finally:
        os.sched_setaffinity(0, before)
    settled = far_side.outcome(far_side.offer("where", metrics=("cpu",)))
    assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled.reason
    assert agent.process
    if len(cores(frozenset(two))) == 2:
        assert settled.metrics["cpu"] == two[0]
        assert os.sched_getaffinity(agent.process.pid) == {two[1]}


def test_a_dry_run_shows_the_command_and_runs_nothing(
    agent: AgentProcess, tmp_path: Path, programs_start: None
) -> None:
    mark = tmp_path / "was-run"
    component = "name: marks\nparameters: {n: {type: int, min: 1, max: 8, default: 2, unit: MiB, flag: '-n{value}'}}\n"
    component += f"env: {{LEVEL: high}}\napplications: {{main: {{command: [touch, {mark}, --]}}}}\n"
    component += "metrics: {t: {type: wall_time}}\n"
    (agent.components / "marks.yaml").write_text(component)
    done = run_agent_command(["try", "marks", "--components", str(agent.components), "--dry-run", "--set", "n=4"])
    assert done.returncode == 0, done.stderr
    assert "n = 4   (unit MiB, default 2)" in done.stdout
    assert f"command: {['touch', str(mark), '--', '-n4']}" in done.stdout
    assert "env: LEVEL=high" in done.stdout
    assert "timing" not in done.stdout  # nothing is timed, so the load of the machine does not matter
    assert not mark.exists()
    done = run_agent_command(["try", "marks", "--components", str(agent.components), "--dry-run", "--set", "n=9"])
    assert done.returncode != 0


def test_try_accepts_an_application_that_reports_one_of_the_metrics(agent: AgentProcess, programs_start: None) -> None:
    component = "name: two\nparameters: {n: {type: int, min: 1, max: 8, default: 2, flag: '-n{value}'}}\n"
    component += "applications: {main: {command: [echo, 'speed 5']}, silent: {command: ['true']}}\n"
    component += (
        "metrics: {speed: {type: regex, pattern: 'speed (\\d+)'}, power: {type: regex, pattern: 'power (\\d+)'}}\n"
    )
    (agent.components / "two.yaml").write_text(component)
    command = ["try", "two", "--components", str(agent.components)]
    done = run_agent_command(command)
    assert done.returncode == 0, done.stdout
    assert "metric speed = 5\nmetric power: no value: nothing in stdout matches" in done.stdout
    required = run_agent_command([*command, "--metric", "power"])
    assert required.returncode == 1
    assert "outcome: infeasible" in required.stdout
    silent = run_agent_command([*command, "--application", "silent"])
    assert silent.returncode == 1, "an application without any metric measures nothing"


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("power nan", "'nan' is not a finite number"),
        ("power 1.234,5ms", "'1.234,5ms' is not a number: a comma separates groups of three digits"),
        ("power 7 parsecs", "'7 parsecs' is not a number with a known unit"),
    ],
)
def test_a_metric_without_a_value_says_why(agent: AgentProcess, printed: str, why: str, programs_start: None) -> None:
    component = f"name: two\napplications: {{main: {{command: [echo, 'speed 16.0 ms, {printed}']}}}}\nmetrics:\n"
    component += "  speed: {type: regex, pattern: 'speed ([^,]+)'}\n  power: {type: regex, pattern: 'power (.+)'}\n"
    (agent.components / "two.yaml").write_text(component)
    command = ["try", "two", "--components", str(agent.components)]
    done = run_agent_command(command)
    assert done.returncode == 0, done.stdout
    assert "metric speed = 0.016\n" in done.stdout
    assert f"metric power: no value: {why}" in done.stdout
    found = json.loads(run_agent_command([*command, "--json"]).stdout)
    assert found["metrics"] == {"speed": 0.016}
    assert found["missing"]["power"].startswith(why)


def test_rendered_files_are_printed_and_kept(agent: AgentProcess, tmp_path: Path, programs_start: None) -> None:
    folder = agent.components / "conf"
    folder.mkdir()
    (folder / "redis.in").write_text("appendonly ${aof}\nio-threads ${threads}\n")
    (folder / "component.yaml").write_text(
        "name: conf\nparameters:\n  aof: {type: boolean, default: false, on: 'yes', off: 'no'}\n"
        "  threads: {type: int, min: 1, max: 8, default: 2}\n"
        "templates: [{source: redis.in, target: redis.conf}]\n"
        "applications: {main: {command: [sh, -c, 'mkfifo pipe; echo made > out.txt; cat redis.conf']}}\n"
    )
    command = ["try", "conf", "--components", str(agent.components), "--set", "aof=yes"]
    kept = tmp_path / "kept"
    dry = run_agent_command([*command, "--dry-run"])
    assert "file: redis.conf\n  | appendonly yes\n  | io-threads 2\n" in dry.stdout
    done = run_agent_command([*command, "--keep", str(kept)])
    assert done.returncode == 0, done.stdout
    assert "  | appendonly yes\n" in done.stdout
    assert (kept / "work" / "redis.conf").read_text() == "appendonly yes\nio-threads 2\n"
    assert (kept / "work" / "out.txt").read_text() == "made\n"
    assert "appendonly yes" in (kept / "stdout").read_text()
    again = run_agent_command([*command, "--keep", str(kept)])
    assert again.returncode == 2
    assert "exists already. Name a new folder" in again.stderr


def test_errors_are_json_for_programs(agent: AgentProcess, programs_start: None) -> None:
    (agent.components / "bad.yaml").write_text("name: bad\nfoo: 1\n")
    done = run_agent_command(["check", str(agent.components / "bad.yaml"), "--json"])
    found = json.loads(done.stdout)["error"]
    assert (done.returncode, found["code"]) == (2, "invalid_component")
    assert {(one["line"], one["field"]) for one in found["problems"]} == {(1, "applications"), (2, "foo")}
    for more, code, status in (
        (["--application", "none"], "not_in_component", 1),
        (["--set", "x=99"], "unsuitable_value", 1),
        (["--set", "x"], "invalid_option", 2),
    ):
        done = run_agent_command(["try", str(agent.components / "basic.yaml"), "--json", *more])
        assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (status, code)
    fine = json.loads(run_agent_command(["check", str(agent.components / "basic.yaml"), "--json"]).stdout)
    assert [one["name"] for one in fine["components"]] == ["basic"]


def test_a_reader_that_has_gone_is_no_error(agent: AgentProcess, programs_start: None) -> None:
    program = Path(sys.executable).with_name("trimtab-agent")
    line = f"{program} check {agent.components} | true; {program} --help | true"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_try_ignores_faults_of_components_in_other_folders(agent: AgentProcess, programs_start: None) -> None:
    own = agent.components / "alone" / "component.yaml"
    own.parent.mkdir()
    own.write_text((agent.components / "basic.yaml").read_text().replace("name: basic", "name: alone"))
    (agent.components / "broken.yaml").write_text("name: broken\n")
    line = ["--components", str(agent.components), "--dry-run"]
    assert run_agent_command(["try", "alone", *line]).returncode == 0
    done = run_agent_command(["try", "basic", *line])
    assert (done.returncode, "broken.yaml" in done.stderr) == (2, True), done.stderr


def test_options_that_mean_nothing(agent: AgentProcess, programs_start: None) -> None:
    many = str(2 * len(os.sched_getaffinity(0)))
    for options, words in (
        (["--trial-cores", many], f"--trial-cores {many} with 1 slot needs {many} cores; the agent may use only "),
        (["--trial-cores", "-1"], "-1 is below the minimum 0"),
        (["--trial-memory-mib", "0"], "0 is below the minimum 1"),
        (["--runner", "slurm", "--trial-cores", "1"], "--trial-cores is only valid with --runner local"),
        (["--runner", "slurm", "--trial-memory-mib", "9"], "--trial-memory-mib is only valid with --runner local"),
    ):
        done = run_agent_command(["try", "basic", "--components", str(agent.components), *options])
        assert done.returncode == 2
        assert words in done.stderr


# -- control groups


@pytest.fixture
def grouped(programs_start: None) -> Iterator[None]:
    """Control groups can be made here. At the test's end none of this process is left; others make theirs meanwhile."""
    made = Cgroups(64 * MIB).make()
    if not made:
        pytest.skip("control groups with a limit of memory cannot be made here; the tests without them are run")
    place = Path(made).parent
    cgroup.remove(made)
    before = set(place.glob(f"trimtab-{os.getpid()}-*"))
    yield
    assert set(place.glob(f"trimtab-{os.getpid()}-*")) <= before


def test_the_group_of_a_slurm_job_counts_what_its_daemons_start(grouped: None, tmp_path: Path) -> None:
    """Slurm puts a job's steps into groups below the job's own."""
    base = Path(Cgroups().make())
    job = base / "job_7"
    step = job / "step_batch"
    step.mkdir(parents=True)
    code = f"""
import os, time
from trimtab_agent.supervisor import cgroup
cgroup.enter({str(step)!r})
while time.process_time() < 0.2: pass
group = cgroup.of_job("7")
print(group, cgroup.cpu_seconds(group) if group else "", os.getpid() in cgroup.threads(group), cgroup.of_job("8"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    for group in (step, job, base):
        cgroup.remove(str(group))
    assert done.returncode == 0, done.stderr
    found, seconds, inside = done.stdout.split()
    assert (found, inside) == (str(job), "True")
    assert 0.1 <= float(seconds) < 0.5


async def test_out_of_memory_is_the_configurations_fault(
    grouped: None, job: Callable[..., tuple[Path, JobSpec]]
) -> None:
    runner = LocalRunner(memory=96 * MIB)
    folder, spec = job("fits", sys.executable, "-c", EAT, "40")
    assert (await run(runner, folder, spec)).outcome is Ended.COMPLETED
    needs = "out of memory: it needs more than 96 MiB, the limit of a trial on this agent"
    folder, spec = job("eats", "sh", "-c", 'echo begun; "$0" -c "$1" 200; exit 0', sys.executable, EAT)
    result = await run(runner, folder, spec)
    assert result.outcome is Ended.INFEASIBLE
    assert result.reason.startswith(f"command: {needs}\nbegun"), "also where the program passes it over"
    build = BuildSpec(
        str(folder.parent / "builds" / "key"), [[sys.executable, "-c", EAT, "200"]], dict(spec.env), 30.0, 1 << 30
    )
    folder, spec = job("builds", "true", build=build)
    result = await run(runner, folder, spec)
    assert (result.outcome, result.reason) == (Ended.INFEASIBLE, f"build: {needs}")
    folder, spec = job("again", sys.executable, "-c", EAT, "40")
    assert (await run(runner, folder, spec)).outcome is Ended.COMPLETED, "nothing of it stays with the supervisor"
    runner.close()


def test_a_limit_above_the_trial_explains_why_it_was_killed(
    grouped: None, job: Callable[..., tuple[Path, JobSpec]]
) -> None:
    """As in a container or a Slurm job, whose limit the agent has not set. The kernel kills the trial there."""
    folder, spec = job("a", sys.executable, "-c", EAT, "200")
    (folder / "spec.json").write_text(spec.to_json())
    group = Cgroups(96 * MIB).make()
    code = (
        "import sys; from trimtab_agent.supervisor import cgroup, process, supervise; "
        "from trimtab_agent.signals import Signals; cgroup.enter(sys.argv[1]); process.adopt_orphans(); "
        "signals = Signals(); signals.follow(sys.argv[2] + '/cancel'); "
        "made = supervise.Supervisor(sys.argv[2], supervise.read_spec(sys.argv[2]), signals).run(); "
        "print(made['outcome'], made['reason_code'])"
    )
    done = subprocess.run([sys.executable, "-c", code, group, folder], capture_output=True, text=True, check=False)
    cgroup.remove(group)
    assert done.stdout.split() == ["infeasible", "out_of_memory"], done.stderr


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"proc/self/cgroup": "0::/a/job_1/step\n", "sys/fs/cgroup/a/job_1/memory.max": "1000\n"}, (2, 1000)),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, (0, 0)),
        (
            {
                "proc/self/cgroup": "4:memory:/a\n0::/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{1 << 63}\n",
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2000\n",
            },
            (1, 2000),
        ),
        ({"proc/self/cgroup": "0::/\n"}, (0, 0)),
    ],
)
def test_the_limit_of_memory_is_that_of_the_nearest_group(
    tmp_path: Path, files: dict[str, str], found: tuple[int, int]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    groups, limit = cgroup.memory_limit(str(tmp_path))
    assert (len(groups), limit) == found


async def test_a_limit_goes_with_the_trial_when_its_agent_is_gone(
    grouped: None, job: Callable[..., tuple[Path, JobSpec]]
) -> None:
    first, second = LocalRunner(memory=96 * MIB), LocalRunner(memory=96 * MIB)
    folder, spec = job("a", "sh", "-c", 'until [ -e open ]; do sleep 0.02; done; "$0" -c "$1" 200', sys.executable, EAT)
    await first.submit(folder, spec)
    await second.status(folder)
    (folder / "work" / "open").touch()
    result = await asyncio.wait_for(second.wait(folder), PATIENCE)
    assert result.outcome is Ended.INFEASIBLE
    assert "command: out of memory" in result.reason
    await first.wait(folder)
    first.close()
    second.close()


@pytest.mark.parametrize("memory", [0, 96 * MIB])
async def test_hidden_processes_of_a_killed_supervisor_are_ended(
    grouped: None, job: Callable[..., tuple[Path, JobSpec]], memory: int
) -> None:
    """A process without the trial's mark, in a session of its own, whose parents have all ended."""
    runner = LocalRunner(memory=memory)
    folder, spec = job("a", "sh", "-c", "env -i setsid sleep 1000 & echo $! > hidden; touch begun; sleep 1000")
    await runner.submit(folder, spec)
    await wait_for_async((folder / "work" / "begun").exists)
    hidden = int((folder / "work" / "hidden").read_text())
    os.kill(int((folder / "pid").read_text().split()[0]), signal.SIGKILL)
    result = await asyncio.wait_for(runner.wait(folder), PATIENCE)
    assert result.reason == "the trial's supervisor process was killed"
    wait_for(lambda: not Path(f"/proc/{hidden}").exists() or "Z" in _state(hidden))
    runner.close()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_groups_of_dead_agents_are_cleared_away(grouped: None, agent: AgentProcess, far_side: FarSide) -> None:
    agent.start("--trial-memory-mib", "200")
    far_side.outcome(far_side.offer("basic"))
    mine = Path(Cgroups(64 * MIB).make())
    assert agent.process
    left = list(mine.parent.glob(f"trimtab-{agent.process.pid}-*"))
    assert len(left) == 1
    agent.kill()
    wait_for(lambda: not cgroup.processes(str(left[0])))
    Cgroups(64 * MIB)
    assert not left[0].exists()
    assert mine.exists(), "its agent, this process, lives"
    cgroup.remove(str(mine))


async def test_trials_run_without_control_groups_after_one_warning(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    job: Callable[..., tuple[Path, JobSpec]],
    programs_start: None,
) -> None:
    """The runner finds no mounted control group, also on a machine that has some."""
    monkeypatch.setattr("trimtab_agent.runners.cgroups._mounts", list)
    runner = LocalRunner(memory=64 * MIB)
    for name in "ab":
        folder, spec = job(name, sys.executable, "-c", EAT, "100")
        assert (await run(runner, folder, spec)).outcome is Ended.COMPLETED
    folder, spec = job("killed", "sh", "-c", "touch begun; setsid sleep 1000 & sleep 1000")
    await runner.submit(folder, spec)
    await wait_for_async((folder / "work" / "begun").exists)
    os.kill(int((folder / "pid").read_text().split()[0]), signal.SIGKILL)
    assert (await asyncio.wait_for(runner.wait(folder), PATIENCE)).outcome is Ended.FAILED
    (reported,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert reported == ('no control groups for trials, there is no memory limit reason="no control groups are mounted"')
    assert stored_result(folder) is None
    runner.close()


def test_a_place_where_no_group_can_be_made(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    place = Path("/sys/fs/cgroup/trimtab-none")
    monkeypatch.setattr("trimtab_agent.runners.cgroups._mounts", lambda: [(place, "/", {"memory"})])
    assert Cgroups(64 * MIB).make() == ""
    assert 'no control groups for trials, there is no memory limit reason="/sys/fs/cgroup/trimtab-none' in caplog.text
