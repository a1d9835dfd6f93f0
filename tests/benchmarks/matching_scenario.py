"""The scenario of the thesis [robert-2021, section 7.5] as a whole: real studies, real submissions and real reads.

A Slurm of four virtual nodes has the plug-in, an agent and an embedded service behind it. Three users draw applications
from a pool of 9,218 patterns of reads. Some of their jobs are optimised: a study of the small-read-optimizer on as
many nodes, with its final check. Then all jobs are submitted with `sbatch` by their users, in a random order. The
plug-in decides. At last each application that was submitted is measured on each of its numbers of nodes, in
interleaved rounds, with the default and with all settings that a record of the application recommends, that one of its
jobs was given, or that one of the patterns of the workload's README likes best.

The default is scaled to the file, as the README of the workload explains. The reads are real, the storage is the
workload's slow file server, whose delay is injected. A run time is the time of the reads on the slowest node.

The same command goes on where it was interrupted. Root is needed, because jobs are submitted as other users, and a
/dev/fuse that all users may open.

    python -m tests.benchmarks.matching_scenario --scale 0.2 --folder /var/tmp/scenario
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.progress import track
from scipy import stats

import trimtab
from tests.benchmarks.table import Row, result, show
from tests.factories.agent import RealAgent
from tests.factories.jobs import ADJECTIVES, ROOTS
from tests.factories.service import EmbeddedService
from tests.factories.slurm import NODES, Slurm, slurm_cluster
from trimtab.method import FinalCheck
from trimtab.records import Record
from trimtab.spec import JobMetadata

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "agents" / "workloads" / "small-read-optimizer" / "src"
COMPONENT = "small-reads"
POOL = 9_218
# Accounts that every Debian has. Their home folders are below the scenario's own folder.
ACCOUNTS = ("games", "news", "mail")
# [robert-2021, table 7.4]: applications, and the least and the most jobs and optimised jobs of an application.
USERS = ((10, (5, 10), (1, 2)), (20, (1, 5), (1, 3)), (25, (5, 15), (2, 4)))
NAMES = ("SRO_SEQUENCE_LENGTH", "SRO_DSC_BINSIZE", "SRO_CLUSTER_THRESHOLD", "SRO_PREFETCH_SIZE")
GRID = ((50, 100, 750), (26_214, 1 << 20, 10 << 20), (2, 6), (1 << 18, 1 << 19, 1 << 20, 2 << 20, 4 << 20, 209_715_200))
DEFAULT = (100, 26_214, 2, 1 << 19)
# The best settings of sro-1, sro-2, sro-3 and hotspots in the workload's README.
OTHERS = (
    (50, 10 << 20, 2, 2 << 20),
    (750, 1 << 20, 2, 1 << 18),
    (100, 10 << 20, 2, 1 << 19),
    (50, 10 << 20, 2, 1 << 20),
)
ON_NODE = """#!/bin/sh
cat SITE/files/data >/dev/null
mount=$(mktemp -d SITE/mounts/XXXXXXXX)
SITE/slowfs --latency 500 --bandwidth 200 SITE/files "$mount" SITE/fakeapp "$@" "$mount/data"
status=$?
rmdir "$mount"
exit $status
"""
ON_ALL_NODES = '#!/bin/sh\nexec srun --ntasks-per-node=1 SITE/on-node "$@"\n'
# A user's job: it also writes down which settings it was given.
JOB = '#!/bin/sh\nenv | grep "^SRO_"\nexec SITE/on-all-nodes {arguments}\n'
# Measures an application in one job: each line of the first file holds the variables of a configuration.
ROUNDS = """#!/bin/sh
for round in $(seq {rounds}); do
    while read -r settings <&3; do
        echo "settings $settings"
        env $settings SITE/on-all-nodes {arguments}
    done 3<"{configurations}"
done
"""
SLOWEST = """
import json

def seconds(run):
    found = [json.loads(line)["seconds"] for line in run.stdout.splitlines() if line.startswith("{")]
    if not found:
        raise ValueError("no node has answered")
    return max(found)
"""

Values = tuple[int, ...]
"""A configuration, in the order of NAMES."""


@dataclass(frozen=True)
class Application:
    """An application of a user: `arguments` is its pattern of reads, `script` the path of its batch script."""

    user: str
    name: str
    arguments: str
    script: str


@dataclass(frozen=True)
class Submission:
    """A job, optimised or not."""

    application: Application
    name: str
    nodes: int


@dataclass(frozen=True)
class Given:
    """The settings that a submitted job was given. `values` and the record's fields are None if nothing was applied."""

    user: str
    application: str
    nodes: int
    score: float
    record_application: str | None
    record_user: str | None
    record_nodes: int | None
    values: Values | None

    @property
    def right(self) -> bool:
        """True if the record is of the job's application."""
        return self.record_application == self.application

    @property
    def right_nodes(self) -> bool:
        """True if the record has the job's number of nodes."""
        return self.record_nodes == self.nodes


@dataclass(frozen=True)
class Fared:
    """The median gain of a job's settings over the default, and the best that any settings measured would have had."""

    gain: float
    potential: float
    slower: bool
    """True if the settings are slower than the default beyond doubt, by the t interval of the rounds (95 %)."""


# --- the drawn scenario


def pattern(draws: random.Random) -> str:
    """Return the arguments of fakeapp for a variation of one of the patterns of [robert-2021, section 2.2.3]."""
    kind = draws.randrange(4)
    if kind == 0:
        turn = draws.choice((50, 100, 200))
        return f"-N 1000 -S {draws.randint(2, 8)}M -L {draws.randint(2, 8)} -r {turn} -l 1M"
    if kind == 1:
        return f"-N 2000 -S {draws.choice((128, 256, 512))}k -L {draws.randint(100, 250)}"
    if kind == 2:
        return f"-L {draws.randint(20, 35)} -g 5k:{draws.randint(3, 6)}M -G 20:80"
    return f"-N 1200 -S {draws.randint(2, 6)}M -L {draws.randint(8, 16)} -r {draws.choice((100, 150, 200))}"


def draw(seed: int, scale: float, homes: Path) -> tuple[list[Submission], list[Submission]]:
    """Return the jobs that are optimised, and the jobs that are submitted, each in the order of the scenario."""
    draws = random.Random(seed)
    names = [f"{one}_{other}" for one in ROOTS for other in ROOTS if one != other][:POOL]
    pool = {name: pattern(draws) for name in names}
    optimised, submitted = [], []
    for user, (applications, jobs, optimisations) in zip(ACCOUNTS, USERS, strict=True):
        for name in draws.sample(names, max(1, round(scale * applications))):
            script = homes / user / f"{name}_{draws.randrange(10**9)}" / "sbatch"
            application = Application(user, name, pool[name], str(script))
            optimised += [submission(draws, application) for _ in range(draws.randint(*optimisations))]
            submitted += [submission(draws, application) for _ in range(draws.randint(*jobs))]
    draws.shuffle(submitted)
    return optimised, submitted


def submission(draws: random.Random, application: Application) -> Submission:
    """Draw a job of an application: its nodes, and its name [robert-2021, section 7.5.3]."""
    nodes, name = draws.randint(1, NODES), application.name
    if draws.random() < 2 / 3:
        name = f"{draws.choice(ADJECTIVES)}_{name}"
    if draws.random() < 1 / 3:
        name = f"{name}_{nodes}"
    return Submission(application, name, nodes)


# --- the site


def install(site: Path, applications: Sequence[Application]) -> None:
    """Install the workload, the users' batch scripts and the component on the cluster."""
    flags = ["gcc", "-std=gnu11", "-O2", "-pthread", "-o"]
    library = [str(SOURCES / name) for name in ("sro.c", "settings.c", "hooks.c")]
    for folder in ("files", "mounts", "components"):
        (site / folder).mkdir(parents=True, exist_ok=True)
    (site / "mounts").chmod(0o1777)
    subprocess.run([*flags, site / "fakeapp", SOURCES / "fakeapp.c"], check=True)
    subprocess.run([*flags, site / "slowfs", SOURCES / "slowfs.c"], check=True)
    subprocess.run(
        [*flags, site / "libsro.so", "-fPIC", "-shared", "-fvisibility=hidden", *library, "-ldl"], check=True
    )
    if not (site / "files" / "data").exists():
        subprocess.run([site / "fakeapp", "--create", "256M", site / "files" / "data"], check=True)
    # All users share the file, and the line of the slow file server.
    for path in (site / "files" / "data", site / "files" / f".slowfs-{os.uname().nodename}"):
        path.touch()
        path.chmod(0o666)
    write_script(site / "on-node", ON_NODE, site)
    write_script(site / "on-all-nodes", ON_ALL_NODES, site)
    for one in applications:
        write_script(Path(one.script), JOB.format(arguments=one.arguments), site)
        shutil.chown(Path(one.script).parent, one.user)
    (site / "components" / "slowest.py").write_text(SLOWEST)
    (site / "components" / "component.yaml").write_text(yaml.safe_dump(component(site, applications)))
    policy = {"mode": "apply", "control_share": 0, "components": {COMPONENT: {"workload": ["nodes"]}}}
    (site / "policy.yaml").write_text(yaml.safe_dump({"matching": policy}))


def write_script(path: Path, text: str, site: Path) -> None:
    """Write a script; SITE stands for its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("SITE", str(site)))
    path.chmod(0o755)


def component(site: Path, applications: Sequence[Application]) -> Mapping[str, object]:
    """Return the component file: the grid of the workload, and the number of nodes."""
    parameters: dict[str, object] = {
        name: {"type": "ordinal", "values": list(values), "default": default, "env": name}
        for name, values, default in zip(NAMES, GRID, DEFAULT, strict=True)
    }
    parameters["nodes"] = {"type": "int", "min": 1, "max": NODES, "default": 1, "scheduler": "--nodes={value}"}
    commands = {one.name: [str(site / "on-all-nodes"), *one.arguments.split()] for one in applications}
    return {
        "name": COMPONENT,
        "parameters": parameters,
        "preload": [str(site / "libsro.so")],
        "env": {"SRO_DIRECTORY": str(site / "mounts")},
        "applications": {name: {"command": command, "timeout": 60} for name, command in commands.items()},
        "metrics": {"seconds": {"type": "python", "function": "slowest.py:seconds"}},
    }


class Site:
    """A running cluster with the plug-in, the agent and the service."""

    def __init__(self, folder: Path, slurm: Slurm, client: trimtab.Client) -> None:
        self.folder, self.slurm, self.client = folder, slurm, client

    def submit(self, user: str, script: Path | str, nodes: int, name: str, **environment: str) -> tuple[str, str]:
        """Submit a batch script as a user, wait for its end, and return the output and the job's comment."""
        out = Path(self.folder / "out" / f"{name}-{time.time_ns()}")
        out.parent.mkdir(exist_ok=True)
        out.parent.chmod(0o1777)
        argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "sbatch", "--parsable"]
        argv += [f"--nodes={nodes}", "--ntasks-per-node=1", f"--job-name={name}", f"--output={out}", str(script)]
        own = {"SLURM_CONF": str(self.slurm.configuration), "PATH": os.environ["PATH"], **environment}
        done = subprocess.run(argv, env=own, cwd="/tmp", capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"sbatch has refused {name}: {done.stderr}")
        job = done.stdout.strip()
        while (state := self.slurm.run("squeue", "-h", "--states=all", f"--jobs={job}", "-o", "%T").strip()) in (
            *("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"),
            "",
        ):
            time.sleep(0.05)
        if state != "COMPLETED":
            raise SystemExit(f"job {job} ended as {state}: {out.read_text() if out.exists() else ''}")
        comment = re.search(r"Comment=(.*)", self.slurm.run("scontrol", "show", "job", job))
        return out.read_text(), comment[1].strip() if comment else ""


@contextmanager
def running(folder: Path) -> Iterator[Site]:
    """Run everything, with the data in the folder."""
    site, socket = folder / "site", folder / "match.sock"
    shutil.rmtree(folder / "slurm", ignore_errors=True)
    (folder / "slurm").mkdir()
    with (
        slurm_cluster(folder / "slurm", "CliFilterPlugins=lua\n") as slurm,
        EmbeddedService(folder / "service") as service,
        trimtab.Client(service.grpc_address, token=service.token) as client,
    ):
        os.environ["SLURM_CONF"] = str(slurm.configuration)
        install_sh = str(ROOT / "deploy" / "slurm" / "install.sh")
        argv = [install_sh, str(folder / "plug-in"), f"SOCKET={socket}"]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(folder / "plug-in" / "cli_filter.lua", slurm.folder)
        options = ["--runner", "slurm", "--policy", str(site / "policy.yaml"), "--match-socket", str(socket)]
        proof = service.data_dir / "admin-token"
        with RealAgent(folder, service.grpc_address, proof, site / "components", name="cluster", options=options):
            yield Site(site, slurm, client)


# --- studies, submissions and measurements


def optimise(site: Site, jobs: Sequence[Submission], trials: int, check: int) -> None:
    """Run the study of each optimised job, unless it has ended."""
    for number, job in enumerate(track(jobs, "optimisations")):
        values = [trimtab.Ordinal(name, own, default=at) for name, own, at in zip(NAMES, GRID, DEFAULT, strict=True)]
        study = site.client.create_study(
            f"optimisation-{number}",
            space=[*values, trimtab.Int("nodes", job.nodes, job.nodes, default=job.nodes)],
            objectives=[trimtab.Minimize("seconds")],
            seed=number,
            max_trials=trials,
            component=COMPONENT,
            application=job.application.name,
            final_check=FinalCheck(max_trials=check, effects=0),
            job=JobMetadata(
                user=job.application.user,
                name=job.name,
                program="sbatch",
                command=f"sbatch {job.application.script}",
                nodes=job.nodes,
            ),
            load_if_exists=True,
        )
        if study.wait(progress=False) != "COMPLETED" or study.verdict is None:
            raise SystemExit(f"{study.name} has ended as {study.state}: {study.status.reason}")


def submit(site: Site, jobs: Iterable[Submission], records: Mapping[str, Record]) -> Iterator[Given]:
    """Submit each job as its user, with nothing but the plug-in to help it."""
    for job in jobs:
        output, comment = site.submit(job.application.user, job.application.script, job.nodes, job.name)
        found = re.search(r"trimtab:(\S+):([\d.]+)", comment)
        record = records[found[1]] if found else None
        settings = dict(line.split("=", 1) for line in output.splitlines() if line.startswith("SRO_"))
        yield Given(
            job.application.user,
            job.application.name,
            job.nodes,
            float(found[2]) if found else math.nan,
            record.application if record else None,
            record.job.user if record else None,
            record.job.nodes if record else None,
            tuple(int(settings[name]) for name in NAMES) if record else None,
        )


def measure(
    site: Site, application: Application, nodes: int, wanted: Sequence[Values], rounds: int
) -> list[list[float]]:
    """Return the seconds of each round for each configuration, measured in turns in one job."""
    folder = site.folder / "measured"
    folder.mkdir(exist_ok=True)
    lines = folder / f"{application.name}-{nodes}.txt"
    always = f"LD_PRELOAD={site.folder / 'libsro.so'} SRO_DIRECTORY={site.folder / 'mounts'}"
    texts = [" ".join(f"{name}={value}" for name, value in zip(NAMES, values, strict=True)) for values in wanted]
    lines.write_text("".join(f"{always} {text}\n" for text in texts))
    script = lines.with_suffix(".sh")
    text = ROUNDS.format(rounds=rounds, configurations=lines, arguments=application.arguments)
    write_script(script, text, site.folder)
    output, _ = site.submit(application.user, script, nodes, "measure", TRIMTAB_MATCH="off")
    runs = [
        max(json.loads(line)["seconds"] for line in run.splitlines() if line.startswith("{"))
        for run in output.split("settings ")[1:]
    ]
    if len(runs) != rounds * len(wanted):
        raise SystemExit(f"{len(runs)} of {rounds * len(wanted)} runs of {application.name} have ended: {output}")
    return [runs[place :: len(wanted)] for place in range(len(wanted))]


# --- results


def fare(job: Given, measured: Mapping[Values, Sequence[float]]) -> Fared:
    """Return how a job fared, from the measurements of its application on its number of nodes."""
    gains = {
        values: [1 - seconds / default for seconds, default in zip(runs, measured[DEFAULT], strict=True)]
        for values, runs in measured.items()
    }
    potential = max(statistics.median(rounds) for rounds in gains.values())
    if job.values is None:
        return Fared(0.0, potential, slower=False)
    own = gains[job.values]
    error = statistics.stdev(own) / math.sqrt(len(own))
    highest = statistics.fmean(own) + float(stats.t.ppf(0.975, len(own) - 1)) * error
    return Fared(statistics.median(own), potential, slower=highest < 0)


def share(pairs: np.ndarray) -> np.ndarray:
    """Return which share of all potential gains is reached. `pairs`: gain and potential in the last dimension."""
    return np.asarray(pairs[..., 0].sum(-1) / pairs[..., 1].sum(-1))


def interval(jobs: Sequence[object], of: Callable[..., Any]) -> tuple[float, float]:
    """Return the bootstrap interval of a statistic over jobs, with 95 %."""
    rows = np.array(jobs)
    draws = np.random.default_rng(0).integers(len(rows), size=(4_000, len(rows)))
    low, high = np.percentile([of(rows[draw]) for draw in draws], (2.5, 97.5))
    return float(low), float(high)


def rows(
    given: Sequence[Given],
    measured: Mapping[str, Mapping[Values, list[float]]],
    studies: int,
    recorded: Collection[str],
) -> Iterator[Row]:
    """Return the rows of the table; each has the published figure too.

    `recorded` has the applications with a record. A job of another application has no right record.
    """
    fared = [fare(job, measured[key(job)]) for job in given]
    own = [one.gain for one in fared]
    applied = sum(job.values is not None for job in given)
    yield Row("jobs", len(given), "", peers={"published": 366})
    yield Row("applications", len({job.application for job in given}), "", peers={"published": 41})
    yield Row("optimisations", studies, "", peers={"published": 124})
    known = [job for job in given if job.application in recorded]
    yield Row("jobs whose application has a record", 100 * len(known) / len(given), "%")
    right = 100 * statistics.fmean(job.right for job in known)
    yield Row("of these: right application", right, "%", "92 %", right >= 92, {"published": 92})
    yield Row(
        "of these: right nodes", 100 * statistics.fmean(job.right_nodes for job in known), "%", peers={"published": 56}
    )
    yield Row("jobs that were given settings", 100 * applied / len(given), "%")
    wrong = sum(job.values is not None and not job.right for job in given)
    yield Row("of these: wrong application", 100 * wrong / max(1, applied), "%")
    for name, of, published in (("median", np.median, 28.39), ("mean", np.mean, 26.06)):
        low, high = interval(own, of)
        note = f"gain, {name}: 95 % interval {100 * low:.1f} to {100 * high:.1f} %."
        yield Row(f"gain, {name}", 100 * float(of(own)), "%", peers={"published": published}, note=note)
    for user, (account, published) in enumerate(zip(ACCOUNTS, (23.85, 27.40, 26.24), strict=True), 1):
        mine = statistics.fmean(one.gain for job, one in zip(given, fared, strict=True) if job.user == account)
        yield Row(f"gain of user {user}, mean", 100 * mine, "%", peers={"published": published})
    pairs = [(one.gain, one.potential) for one in fared]
    low, high = interval(pairs, share)
    note = f"gain / potential: 95 % interval {low:.2f} to {high:.2f}."
    yield Row("potential, mean", 100 * statistics.fmean(one.potential for one in fared), "%")
    yield Row("gain / potential", float(share(np.array(pairs))), "", note=note)
    losses = [-one.gain for one in fared if one.slower]
    yield Row("jobs made slower beyond doubt", len(losses), "", peers={"published": 7})
    yield Row("loss of these, median", 100 * statistics.median(losses) if losses else 0.0, "%", peers={"published": 3})
    for application in (False, True):
        for nodes in (False, True):
            group = [
                (job.score, one.gain)
                for job, one in zip(given, fared, strict=True)
                if job.values and (job.right, job.right_nodes) == (application, nodes)
            ]
            if group:
                what = f"{'right' if application else 'wrong'} application, {'right' if nodes else 'wrong'} nodes"
                score, gain = (statistics.median(values) for values in zip(*group, strict=True))
                yield Row(f"{what}: gain, median", 100 * gain, "%", peers={"jobs": len(group), "median score": score})


def key(job: Given) -> str:
    """Return the key of a job's measurements."""
    return f"{job.application} {job.nodes}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.2, help="share of the applications (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=16, help="of a study (default: %(default)s)")
    parser.add_argument("--check", type=int, default=12, help="most trials of a final check (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, choices=range(4, 11), help="(default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/trimtab-scenario"), help="default: %(default)s")
    options = parser.parse_args(argv)
    folder: Path = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    optimised, submitted = draw(options.seed, options.scale, folder / "home")
    applications = list({job.application.script: job.application for job in [*optimised, *submitted]}.values())
    install(folder / "site", applications)
    given_file, measured_file = folder / "given.json", folder / "measured.json"
    with running(folder) as site:
        optimise(site, optimised, options.trials, options.check)
        records = {record.id: record for record in site.client.matching.records()}
        print(f"{len(records)} of {len(optimised)} studies have proven a gain.", flush=True)
        if not given_file.exists():
            given = list(submit(site, track(submitted, "jobs"), records))
            given_file.write_text(json.dumps([asdict(job) for job in given]))
        given = [
            Given(**{**job, "values": tuple(job["values"]) if job["values"] else None})
            for job in json.loads(given_file.read_text())
        ]
        measured = json.loads(measured_file.read_text()) if measured_file.exists() else {}
        by_name = {one.name: one for one in applications}
        for pair in track(sorted({key(job) for job in given} - set(measured)), "measurements"):
            name, nodes = pair.split()
            wanted: set[Values] = {DEFAULT, *OTHERS}
            wanted |= {job.values for job in given if key(job) == pair and job.values}
            wanted |= {
                tuple(int(record.params[each]) for each in NAMES)
                for record in records.values()
                if record.application == name
            }
            in_order = [DEFAULT, *sorted(wanted - {DEFAULT})]
            runs = measure(site, by_name[name], int(nodes), in_order, options.rounds)
            measured[pair] = list(zip(in_order, runs, strict=True))
            measured_file.write_text(json.dumps(measured))
    table = {pair: {tuple(values): runs for values, runs in found} for pair, found in measured.items()}
    recorded = {record.application for record in records.values()}
    found = result(rows(given, table, len(optimised), recorded))
    (folder / "scenario.json").write_text(json.dumps(found, indent=1))
    show("Application matching as in the thesis", found, Console(width=140))
    return 0


if __name__ == "__main__":
    sys.exit(main())
