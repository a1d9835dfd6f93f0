"""The administrator's policy: what the agent refuses whatever the service asks for."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.factories.patience import PATIENCE, wait_for
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load_all
from trimtab_agent.errors import ConfigError, PolicyError
from trimtab_agent.lease import Lease
from trimtab_agent.policy import Policy, RayRules, SlurmRules, load
from trimtab_agent.runners.base import BuildSpec, JobSpec
from trimtab_agent.runners.slurm_options import UnreadableOptionError, asked, most_nodes, seconds
from trimtab_components.schema import Application, Component

DIGEST = "abcdef0123456789" * 4
LEASE = Lease("l", "nightly-1", 1, 1, "sorter", "", "small", {}, (), 0.0, tenant="acme")
COMPONENT = Component(
    name="sorter",
    digest=DIGEST,
    file=Path("/nowhere/component.yaml"),
    description="",
    parameters={},
    applications={
        "small": Application("small", ("sort",)),
        "own": Application("own", ("sh", "x"), is_script=True),
    },
    metrics={},
)
JOB = JobSpec("nightly-1/1", "/w", "/w", ["sort"], {}, {}, 600.0, (), (), {}, "python")


def policy_file(folder: Path, text: str) -> Path:
    path = folder / "policy.yaml"
    path.write_text(text)
    path.chmod(0o644)
    return path


@pytest.mark.parametrize(
    ("policy", "component", "words"),
    [
        ("slurm: {partitions: [short]}", "applications: {main: {script: job.sh}}", "partition 'long'"),
        ("slurm: {time: '01:00:00'}", "applications: {main: {script: job.sh}}", "time '02:00:00'"),
        (
            "slurm: {nodes: 1}",
            "scheduler: {options: [--nodes=4]}\napplications: {main: {command: [run]}}",
            "number of nodes '4'",
        ),
        ("environment: [OMP_*]", "env: {SECRET: x}\napplications: {main: {command: [run]}}", "variable 'SECRET'"),
        ("batch_scripts: false", "applications: {main: {script: job.sh}}", "batch_scripts"),
    ],
)
def test_jobs_that_the_policy_always_refuses_are_found_before_a_trial(
    tmp_path: Path, policy: str, component: str, words: str, programs_start: None
) -> None:
    folder = tmp_path / "components"
    folder.mkdir()
    (folder / "job.sh").write_text("#!/bin/sh\n#SBATCH --partition=long --time=02:00:00\nrun $1\n")
    (folder / "c.yaml").write_text(f"name: c\n{component}\n")
    rules = str(policy_file(tmp_path, policy))
    done = run_agent_command(["check", str(folder), "--policy", rules])
    assert done.returncode == 2
    assert "refused by the policy: component c, application main: " in done.stdout
    assert words in done.stdout
    refused = json.loads(run_agent_command(["check", str(folder), "--policy", rules, "--json"]).stdout)
    assert words in refused["components"][0]["refused"]["main"]
    with pytest.raises(ConfigError, match="the policy allows none of the installed components"):
        load(Path(rules)).offered(load_all(folder, Generator(tmp_path / "generated")))
    fine = run_agent_command(["check", str(folder)])
    assert fine.returncode == 0, fine.stderr


def test_options_that_depend_on_values_are_left_to_the_trial(tmp_path: Path) -> None:
    text = (
        "name: c\nparameters: {n: {type: int, min: 1, max: 8, default: 8, scheduler: '--nodes={value}'}}\n"
        "scheduler: {options: ['--cpus-per-task={n}']}\napplications: {main: {command: [run]}}\n"
    )
    (tmp_path / "c.yaml").write_text(text)
    found = load_all(tmp_path / "c.yaml", Generator(tmp_path / "generated"))
    assert load(policy_file(tmp_path, "slurm: {nodes: 2, options: [nodes]}")).offered(found)


def admit(folder: Path, text: str, lease: Lease = LEASE, spec: JobSpec = JOB, own: tuple[str, ...] = ()) -> JobSpec:
    return load(policy_file(folder, text)).admit(lease, COMPONENT, spec, own)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "components: {sorter: {}}",
        "components: {sorter: {digests: [" + DIGEST + "], applications: [small]}}",
        "batch_scripts: false",
        "tenants: [acme, other]",
        "studies: ['nightly-*']",
        "environment: []",
        "slurm: {partitions: [short]}",
    ],
)
def test_a_rule_allows_matching_values(tmp_path: Path, text: str) -> None:
    assert replace(admit(tmp_path, text), scheduler_options=()) == JOB


@pytest.mark.parametrize(
    ("text", "changed", "words"),
    [
        ("components: {other: {}}", {}, "component 'sorter' (rule components: other)"),
        (f"components: {{sorter: {{digests: ['{'0' * 64}']}}}}", {}, "(rule components.sorter.digests: 000000"),
        ("components: {sorter: {applications: [large]}}", {}, "'small' (rule components.sorter.applications: large)"),
        ("batch_scripts: false", {"application": "own"}, "'own' (rule batch_scripts: false: no batch scripts)"),
        ("tenants: [other]", {}, "tenant 'acme' (rule tenants: other)"),
        ("tenants: []", {}, "tenant 'acme' (rule tenants: none)"),
        ("studies: ['weekly-*']", {}, "study 'nightly-1' (rule studies: weekly-*)"),
    ],
)
def test_a_refusal_names_the_rule(tmp_path: Path, text: str, changed: dict[str, str], words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        admit(tmp_path, text, replace(LEASE, **changed))  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_variables_of_run_and_build_need_permission(tmp_path: Path) -> None:
    built = replace(JOB, own_env=["OMP_PROC_BIND"], build=BuildSpec("/b", (), {}, 1.0, 1, own_env=["LD_PRELOAD"]))
    admit(tmp_path, "environment: ['OMP_*', LD_PRELOAD]", spec=built)
    with pytest.raises(PolicyError, match=r"variable 'LD_PRELOAD' \(rule environment: OMP_\*\)"):
        admit(tmp_path, "environment: ['OMP_*']", spec=built)


def test_a_trial_s_time_is_cut(tmp_path: Path) -> None:
    assert admit(tmp_path, "limits: {seconds: 90}").timeout == 90
    assert admit(tmp_path, "limits: {seconds: 9000}").timeout == JOB.timeout


RULES = """
slurm:
  partitions: [short, test]
  accounts: [tuning]
  qos: [low]
  nodes: 2
  time: '01:00:00'
  options: [mem, c]
"""


@pytest.mark.parametrize(
    ("options", "directives"),
    [
        (["--partition=short", "--account=tuning", "--qos=low", "--nodes=2", "--time=59"], ()),
        (["-p", "short", "-N1-2", "-t", "60:00"], ["#SBATCH -A tuning --mem=1G  # room", "#BB anything"]),
        (["--part=test,short"], ["#SBATCH --time 0-1", "#SBATCH -c 4"]),
    ],
)
def test_a_job_within_slurm_s_rules(tmp_path: Path, options: list[str], directives: list[str]) -> None:
    admit(tmp_path, RULES, spec=replace(JOB, scheduler_options=options, directives=directives))


@pytest.mark.parametrize(
    ("options", "directives", "words"),
    [
        (["--partition=gpu"], (), "partition 'gpu' (rule slurm.partitions: short, test)"),
        (["--partition=short,gpu"], (), "partition 'gpu'"),
        (["--part=gpu"], (), "partition 'gpu'"),
        (["-pgpu"], (), "partition 'gpu'"),
        (["-p", "gpu"], (), "partition 'gpu'"),
        ([], ["#SBATCH --partition=gpu"], "partition 'gpu'"),
        ([], ["#SBATCH --mem=1G -p 'gpu'"], "partition 'gpu'"),
        (["-A", "physics"], (), "account 'physics' (rule slurm.accounts: tuning)"),
        (["-qhigh"], (), "qos 'high'"),
        (["--nodes=1-3"], (), "number of nodes '1-3' (rule slurm.nodes: at most 2)"),
        (["--nodes=some"], (), "number of nodes 'some'"),
        (["-t", "61"], (), "time '61' (rule slurm.time: at most 01:00:00)"),
        (["-t0"], (), "time '0'"),
        (["--time=UNLIMITED"], (), "time 'UNLIMITED'"),
        (["--reservation=maintenance"], (), "option of sbatch 'reservation' (rule slurm.options: mem, c)"),
        (["-kpgpu"], (), "'-kpgpu' is not one option of sbatch"),
        (["gpu"], (), "'gpu' is not one option of sbatch"),
        ([], ["#PBS -q gpu"], "another scheduler's directive"),
        ([], ["#SBATCH --comment='x -p gpu"], "a quotation mark that is not closed"),
    ],
)
def test_a_job_beyond_slurm_s_rules(tmp_path: Path, options: list[str], directives: list[str], words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        admit(tmp_path, RULES, spec=replace(JOB, scheduler_options=options, directives=directives))
    assert words in str(caught.value)


def test_missing_options_are_taken_from_the_rules(tmp_path: Path) -> None:
    added = ["--partition=short", "--account=tuning", "--qos=low", "--nodes=1-2", "--time=01:00:00"]
    assert admit(tmp_path, RULES).scheduler_options == added
    spec = replace(JOB, scheduler_options=["-N1"], directives=["#SBATCH --qos=low"])
    assert admit(tmp_path, RULES, spec=spec).scheduler_options == ["-N1", added[0], added[1], added[4]]
    own = ("--partition=special", "--time=1-0")
    assert admit(tmp_path, RULES, own=own).scheduler_options == added[1:4]


RAYS_RULES = "ray: {cpus: 4, gpus: 0, memory_mib: 1024, resources: [bench], labels: []}"


def test_a_job_within_ray_s_rules(tmp_path: Path) -> None:
    spec = replace(JOB, scheduler_options=["--num-cpus=4", "--memory=1073741824", '--resources={"bench": 2}'])
    assert admit(tmp_path, RAYS_RULES, spec=spec) == spec
    assert admit(tmp_path, RAYS_RULES).scheduler_options == ["--num-cpus=4"]
    assert admit(tmp_path, RAYS_RULES, own=("--num-cpus=16",)) == JOB
    assert admit(tmp_path, "ray: {gpus: 1}") == JOB


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--num-cpus=4.5", "--num-cpus '4.5' (rule ray.cpus: at most 4)"),
        ("--num-gpus=1", "--num-gpus '1' (rule ray.gpus: at most 0)"),
        ("--memory=1073741825", "--memory '1073741825' (rule ray.memory_mib: at most 1024)"),
        ('--resources={"bench": 1, "other": 1}', "--resources 'other' (rule ray.resources: bench)"),
        ('--label-selector={"zone": "a"}', "--label-selector 'zone' (rule ray.labels: none)"),
        ("--num-cpus=many", "An option of this job for Ray cannot be checked"),
    ],
)
def test_a_job_beyond_ray_s_rules(tmp_path: Path, option: str, words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        admit(tmp_path, RAYS_RULES, spec=replace(JOB, scheduler_options=[option]))
    assert words in str(caught.value)


def test_the_rules_of_another_scheduler_do_not_matter(tmp_path: Path) -> None:
    policy = Policy(ray=RayRules({"cpus": 1}, {}), slurm=SlurmRules({}, nodes=1))
    assert policy.under("ray") == Policy(ray=policy.ray)
    assert policy.under("slurm") == Policy(slurm=policy.slurm)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 5400), ("1:30", 90), ("2:00:05", 7205), ("1-0", 86400), ("1-2:30", 95400), ("1-0:0:7", 86407)]
    + [(text, None) for text in ("0", "0:00", "infinite", "1-", "1:2:3:4", "-1", "")],
)
def test_times_as_sbatch_reads_them(text: str, expected: float | None) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("3", 3), ("2-8", 8), ("1k", 1024), ("1,3", None), ("", None)])
def test_numbers_of_nodes_as_sbatch_reads_them(text: str, expected: int | None) -> None:
    assert most_nodes(text) == expected


def test_a_flag_takes_no_value_from_the_next_word() -> None:
    assert asked(["-k", "--exclusive", "-p", "short"], ()) == [("k", ""), ("exclusive", ""), ("partition", "short")]
    with pytest.raises(UnreadableOptionError):
        asked(["--exclusive", "short"], ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tenant: [a]", "policy.yaml:1: tenant: unknown key; did you mean 'tenants'?"),
        ("slurm: {time: soon}", "policy.yaml:1: slurm.time: 'soon' is not a time for sbatch"),
        ("slurm: {partitions: []}", "slurm.partitions: must name at least one"),
        ("components: {a: {digests: [abc]}}", "components.a.digests: 'abc' is not a digest"),
        ("limits: {trials: 0}", "limits.trials: 0 is below the minimum 1"),
        ("limits: {artifacts: 21}", "limits.artifacts: 21 is above 20"),
        ("limits: {artifact_kib: 2049}", "limits.artifact_kib: 2049 is above 2048"),
        ("batch_scripts: maybe", "batch_scripts: 'maybe' is not true or false"),
        ("- a", "must be a mapping"),
    ],
)
def test_faults_of_the_file_are_reported_with_their_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(policy_file(tmp_path, text))
    assert words in str(caught.value)


def test_a_file_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    path = policy_file(tmp_path, "{}")
    path.chmod(0o664)
    with pytest.raises(ConfigError, match="chmod go-w"):
        load(path)


def test_the_agent_offers_allowed_applications_and_refuses_all_others(
    agent: AgentProcess, far_side: FarSide, tmp_path: Path, programs_start: None
) -> None:
    rules = "components: {basic: {applications: [telling, slow]}}\ntenants: [acme]\nlimits: {trials: 2}"
    path = policy_file(tmp_path, rules)
    agent.start("--policy", str(path), "--slots", "5")
    far_side.wait_for(lambda: far_side.registrations)
    (component,) = far_side.registrations[0].components
    assert (list(component.applications), far_side.registrations[0].slots) == (["slow", "telling"], 2)
    offered = far_side.offer("basic", application="telling", x=0.0)
    assert far_side.outcome(offered).outcome == Outcome.OUTCOME_COMPLETED
    # a study that names none has the first of them
    first = far_side.outcome(far_side.offer("basic", application="", x=7.0))
    assert (first.outcome, first.metrics["value"]) == (Outcome.OUTCOME_COMPLETED, 7.0)
    refused = far_side.outcome(far_side.offer("basic", application="bad"))
    assert refused.outcome == Outcome.OUTCOME_FAILED
    assert "(rule components.basic.applications: telling, slow)" in refused.reason


def test_a_policy_that_leaves_nothing_stops_the_agent(
    agent: AgentProcess, tmp_path: Path, programs_start: None
) -> None:
    agent.start("--policy", str(policy_file(tmp_path, "components: {other: {}}")))
    assert agent.process is not None
    assert agent.process.wait(PATIENCE) == 2
    wait_for(lambda: "the policy allows none of the installed components (basic)" in agent.log)


def test_a_policy_that_is_not_there_is_named(tmp_path: Path, programs_start: None) -> None:
    (tmp_path / "token").write_text("t")
    command = ["run", "--server", "127.0.0.1:1", "--token-file", str(tmp_path / "token")]
    run = run_agent_command([*command, "--components", str(tmp_path), "--policy", str(tmp_path / "none.yaml")])
    assert run.returncode == 2
    assert "none.yaml cannot be read" in run.stderr
