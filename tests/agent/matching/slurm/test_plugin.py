"""The plug-in for sbatch, srun and salloc on a real Slurm."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.agent.far_side import FarSide
from tests.agent.matching.conftest import POLICY, Matching
from tests.agent.matching.slurm.cluster import SOURCES, Cluster, settings
from tests.factories.patience import PATIENCE, wait_for
from trimtab_agent._gen import matching_pb2
from trimtab_agent.matching import client, protocol
from trimtab_agent.messages import of_value


def test_sbatch_gets_settings_comment_and_report(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    job, said = cluster.sbatch(out, "--job-name=angry_ant", "--nodes=2", "--partition=main", "--comment=mine")
    # Nothing that --export would have changed.
    assert settings(out) == {
        "SOLVER_CACHE": "on",
        "SOLVER_THREADS": "8",
        "SOLVER_MODE": "fast",
        "LD_PRELOAD": str(matching.library),
    }
    assert cluster.comment(job) == "mine trimtab:rec1:0.93"
    assert "record rec1 resembles the job (score 0.93); its settings are applied" in said
    asked = matching.far_side.asked[0].job
    assert (asked.name, asked.program, asked.nodes, asked.cluster) == ("angry_ant", "job.sh", 2, "trimtab")
    assert asked.command_line == f"sbatch {cluster.script} {out}"
    (report,) = matching.reported()
    assert (report.job_id, report.end) == (job, matching_pb2.JOB_END_COMPLETED)
    assert report.considered[0].decision == matching_pb2.DECISION_APPLIED
    assert 0 <= report.seconds < 60


def test_a_value_survives_unchanged(cluster: Cluster, matching: Matching, far_side: FarSide, out: Path) -> None:
    far_side.matches.clear()
    far_side.resemble("solver", mode=(mode := 'a "b" $HOME; c, d=e\\f'))
    matching.start()
    cluster.sbatch(out)
    assert settings(out)["SOLVER_MODE"] == mode


def test_the_user_s_preload_comes_first(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    own = str(matching.library.parent / "own.so")
    shutil.copy(matching.library, own)
    cluster.sbatch(out, LD_PRELOAD=own)
    assert settings(out)["LD_PRELOAD"] == f"{own}:{matching.library}"


@pytest.mark.parametrize(
    ("options", "environment", "threads"),
    [
        ((), {"SOLVER_THREADS": "3"}, "3"),
        (("--export=ALL,SOLVER_THREADS=4",), {}, "4"),
        (("--export=NONE",), {}, None),
        ((), {"TRIMTAB_MATCH": "off"}, None),
    ],
)
def test_the_user_s_own_values_win(
    cluster: Cluster,
    matching: Matching,
    out: Path,
    options: tuple[str, ...],
    environment: dict[str, str],
    threads: str | None,
) -> None:
    matching.start()
    job, _ = cluster.sbatch(out, *options, **environment)
    found = settings(out)
    assert found.get("SOLVER_THREADS") == threads
    assert "LD_PRELOAD" not in found
    assert cluster.comment(job) == ""
    assert ("TRIMTAB_MATCH" in environment) == (matching.far_side.asked == [])


def test_a_dry_run_only_logs(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start("matching: {timeout: 10, components: {solver: {preload: [LIBRARY], omit: [SOLVER_WORK]}}}")
    job, said = cluster.sbatch(out)
    assert settings(out) == {}
    assert cluster.comment(job) == ""
    assert "nothing is changed (dry run)" in said
    assert "a dry run leaves a job unchanged job=" in matching.agent.log
    assert 'additions="SOLVER_CACHE=on SOLVER_THREADS=8' in matching.agent.log
    assert matching.reported()[0].considered[0].decision == matching_pb2.DECISION_DRY_RUN


def test_a_record_that_the_policy_refuses(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start(POLICY + "environment: ['OTHER_*']")
    _, said = cluster.sbatch(out)
    assert settings(out) == {}
    assert "does not allow the variable LD_PRELOAD (rule environment)" in said
    assert matching.reported()[0].considered[0].decision == matching_pb2.DECISION_REFUSED


def test_srun(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    cluster.run("srun", cluster.script, out)
    assert settings(out)["SOLVER_THREADS"] == "8"
    (report,) = matching.reported()
    assert report.end == matching_pb2.JOB_END_COMPLETED
    assert report.job.command_line == f"srun {cluster.script} {out}"


def test_salloc_and_the_steps_in_it(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    command = f"srun {cluster.script} {out}; sleep 1"
    cluster.run("salloc", "-N", "1", "--quiet", "--job-name", "ant", "sh", "-c", command)
    assert settings(out)["SOLVER_THREADS"] == "8"
    assert settings(out)["LD_PRELOAD"] == str(matching.library)
    (asked,) = matching.far_side.asked
    assert (asked.job.name, asked.job.program, asked.job.nodes) == ("ant", "sh", 1)
    assert asked.job.command_line == f"salloc sh -c '{command}'"
    (report,) = matching.reported()
    assert report.end == matching_pb2.JOB_END_COMPLETED
    assert report.seconds >= 1


@pytest.mark.parametrize("options", [("-N", "1"), ("--job-name", "sh"), ("-n1", ":", "-n", "1")])
def test_an_interactive_allocation_is_not_asked_about(
    cluster: Cluster, matching: Matching, options: tuple[str, ...]
) -> None:
    matching.start()
    cluster.run("salloc", *options, SHELL="/bin/true")
    assert matching.far_side.asked == []


def test_a_step_of_a_batch_job_is_not_asked_about(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    cluster.run("sbatch", "--output=/dev/null", f"--wrap=srun {cluster.script} {out}")
    assert settings(out)["SOLVER_THREADS"] == "8"
    (asked,) = matching.far_side.asked
    assert asked.job.program == "srun"
    assert asked.job.command_line == f"sbatch srun {cluster.script} {out}"


def test_an_array_is_one_submission(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    job, _ = cluster.sbatch(out, "--array=0-2")
    assert settings(out, 3)["SOLVER_THREADS"] == "8"
    assert cluster.comment(f"{job}_1") == "trimtab:rec1:0.93"
    (report,) = matching.reported()
    assert (report.job_id, report.end) == (job, matching_pb2.JOB_END_COMPLETED)


def test_a_heterogeneous_job_is_one_submission(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    done = cluster.run("sbatch", "--parsable", "--output=/dev/null", "-n1", ":", "-n2", cluster.script, out)
    assert settings(out)["SOLVER_THREADS"] == "8"
    assert len(matching.far_side.asked) == 1
    (report,) = matching.reported()
    assert (report.job_id, report.end) == (done.stdout.strip(), matching_pb2.JOB_END_COMPLETED)


def test_jobs_that_fail_or_are_cancelled(cluster: Cluster, matching: Matching) -> None:
    matching.start()
    cluster.run("sbatch", "--output=/dev/null", "--wrap=exit 3")
    job = cluster.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600").stdout.strip()
    wait_for(lambda: cluster.slurm.jobs()[job][0] == "RUNNING")
    cluster.slurm.run("scancel", job)
    ends = {report.end for report in matching.reported(2)}
    assert ends == {matching_pb2.JOB_END_FAILED, matching_pb2.JOB_END_CANCELLED}


def test_a_job_that_ends_while_the_agent_is_away(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    job, _ = cluster.sbatch(out)
    matching.agent.kill()
    settings(out)
    wait_for(lambda: cluster.slurm.jobs()[job][0] == "COMPLETED")
    matching.start()
    assert matching.reported()[0].job_id == job


def test_an_option_of_the_scheduler(cluster: Cluster, matching: Matching, far_side: FarSide, out: Path) -> None:
    far_side.matches.clear()
    far_side.resemble("solver", contiguous=True)
    matching.start(POLICY + "  options: [contiguous]")
    job, _ = cluster.sbatch(out)
    assert "Contiguous=1" in cluster.slurm.run("scontrol", "show", "job", job)


def test_the_agent_s_own_trials_are_not_asked_about(cluster: Cluster, matching: Matching) -> None:
    matching.start(POLICY, "--runner", "slurm")
    lease = matching.far_side.offer("solver", threads=2)
    matching.far_side.outcome(lease)
    assert matching.far_side.asked == []


def test_a_site_s_own_script(cluster: Cluster, matching: Matching, out: Path) -> None:
    """It asks ours as the page says."""
    page = (SOURCES / "README.md").read_text()
    together = page.partition("    local defaults")[2].partition("\n\n")[0]
    together = f"local defaults{together}".replace("/opt/trimtab/slurm", str(cluster.folder / "installed"))
    script = cluster.slurm.folder / "cli_filter.lua"
    script.write_text(
        "function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end\n"
        "function slurm_cli_pre_submit(options, offset) options['comment'] = 'site'; return slurm.SUCCESS end\n"
        f"function slurm_cli_post_submit(offset, job, step) return slurm.SUCCESS end\n{together}\n"
    )
    try:
        matching.start()
        job, _ = cluster.sbatch(out)
        assert settings(out)["SOLVER_THREADS"] == "8"
        assert cluster.comment(job) == "site trimtab:rec1:0.93"
        assert matching.reported()[0].job_id == job
    finally:
        shutil.copy(cluster.folder / "installed" / "cli_filter.lua", script)


def test_a_user_says_no_run_time_of_a_job(cluster: Cluster, matching: Matching, out: Path) -> None:
    """The answer of a submission is not a job: what its user says about it counts for nothing."""
    matching.start()
    for number in range(8):
        answer = matching.ask(name=f"job-{number}")
        for verb, more in ((protocol.SUBMITTED, {"job_id": "99999999"}), (protocol.ENDED, {"status": "0"})):
            said = {"submission": answer["submission"], "seconds": "100", **more}
            client.talk(str(matching.socket), verb, said.items(), 30)
    job, _ = cluster.sbatch(out)
    # The job that exists is reported, after the agent has looked at the others.
    assert [(one.job_id, one.confirmed) for one in matching.reported()] == [(job, True)]
    assert matching.reported()[0].seconds < 100


ANOTHER_USER = """
import socket, sys
def talk(*lines):
    link = socket.socket(socket.AF_UNIX)
    link.connect(sys.argv[1])
    link.sendall(("\\n".join(lines) + "\\nend\\n").encode())
    return link.makefile().read()
answer = talk("trimtab-match 1 ask", "kind sbatch", "name job", "program job.sh", "arg sbatch")
submission = answer.partition("submission ")[2].split()[0]
talk("trimtab-match 1 submitted", "submission " + submission, "job_id " + sys.argv[2])
"""


def test_a_user_names_no_job_of_another_user(cluster: Cluster, matching: Matching, out: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    matching.start()
    for folder in (cluster.socket.parent, *cluster.socket.parent.parents):
        folder.chmod(folder.stat().st_mode | 0o011)
    job, _ = cluster.sbatch(out, "--begin=now+3")
    argv = ["/usr/bin/python3", "-c", ANOTHER_USER, str(cluster.socket), job]
    subprocess.run(argv, check=True, user="nobody", group="nogroup", extra_groups=[], timeout=PATIENCE)
    (report,) = matching.reported()
    assert (report.job_id, report.job.user, report.confirmed) == (job, "root", True)
    wait_for(lambda: "does not belong to the submission that names it" in matching.agent.log)
    assert f"job_id={job} user=nobody" in matching.agent.log
    assert len(matching.far_side.reports) == 1


def test_a_pair_of_jobs_of_a_live_study(cluster: Cluster, matching: Matching, out: Path) -> None:
    """A job gets the candidate, one whose owner allows proven settings only does not, and both are reported."""
    matching.start(POLICY.replace("control_share: 0", "control_share: 0\n  explore: 0.1"))
    for _ in range(9):
        matching.ask()
    values = {"threads": of_value(4), "mode": of_value("fast")}
    place = matching_pb2.ExploreResponse(study="nightly", trial=7, candidate=True, params=values)
    matching.far_side.places[:] = [place]
    cluster.sbatch(out, "--time=10", TRIMTAB_MATCH="proven")
    assert settings(out)["SOLVER_THREADS"] == "8"
    assert matching.far_side.explored == []
    job, said = cluster.sbatch(tried := out.with_name("tried"), "--time=10")
    assert settings(tried)["SOLVER_THREADS"] == "4"
    assert cluster.comment(job) == "trimtab:rec1:0.93:nightly/7"
    assert "trial 7 of live study 'nightly' tries other settings; TRIMTAB_MATCH=proven prevents this" in said
    assert [one.limit_seconds for one in matching.far_side.explored] == [600]
    ends = {one.job_id: one.considered[0].decision for one in matching.reported(2)}
    assert ends[job] == matching_pb2.DECISION_EXPLORED
