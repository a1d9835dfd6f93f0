"""Ask+tell round trips a second over gRPC and PostgreSQL, compared with Optuna's and OSS Vizier's servers.

Every server suggests at random in the same space of two parameters and is asked by the same number of clients: threads
with a connection each, in one process for each core at most. Trimtab and Optuna use the PostgreSQL server of the
embedded service; Vizier uses its own SQLite file, since it knows no other database. All do the same number of
trials, for the peers slow down as a study grows.

Run as `python -m tests.benchmarks.ask_tell [--quick]`; needs the dependency group `bench`.
"""

import json
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.embedded.postgres import Postgres
from tests.benchmarks.table import Result, Row, main, number, result
from tests.factories.service import EmbeddedService

CLIENTS = (1, 8, 32)
LEAST_RATIO = 8.0
# Trials that are asked for, and told, in one call.
TOGETHER = 100
# A long study may be this much slower than a new one before it counts as a slope: more than two runs differ by.
FLATNESS = 0.9
FLAT_ROUNDS, FLAT_TRIALS = 7, 200
MAX_CLIENT_PROCESSES = os.cpu_count() or 1
# The newest release of OSS Vizier does not run with today's libraries; this date is that of the release.
VIZIER = ("--python", "3.11", "--exclude-newer", "2025-03-01", "--with", "google-vizier[jax]==0.1.24")

RoundTrip = Callable[[], None]


@dataclass(frozen=True)
class Target:
    """A server under load and the study to ask: what a client process must know."""

    kind: str  # trimtab or optuna
    address: str
    study: str
    token: str = ""


def _trimtab_client(target: Target) -> RoundTrip:
    import trimtab

    study = trimtab.Client(target.address, token=target.token).get_study(target.study)

    def round_trip() -> None:
        (trial,) = study.ask(1)
        study.tell(trial, {"loss": float(trial.params["x"])})

    return round_trip


def _optuna_client(target: Target) -> RoundTrip:
    import optuna

    _quiet_optuna()
    host, port = target.address.split(":")
    study = optuna.load_study(
        study_name=target.study,
        storage=optuna.storages.GrpcStorageProxy(host=host, port=int(port)),
        sampler=optuna.samplers.RandomSampler(),
    )

    def round_trip() -> None:
        trial = study.ask()
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_float("y", 0.0, 1.0)
        study.tell(trial, x)

    return round_trip


def _quiet_optuna() -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)


CONNECT = {"trimtab": _trimtab_client, "optuna": _optuna_client}


def _client_process(target: Target, shares: list[int], start: Any, results: Any) -> None:
    """`len(shares)` clients, each doing its share of the trials; sends the time at which each round trip ended."""
    clients = [CONNECT[target.kind](target) for _ in shares]
    ends: list[list[float]] = [[] for _ in shares]
    faults: list[BaseException] = []

    def work(index: int) -> None:
        try:
            for _ in range(shares[index]):
                clients[index]()
                ends[index].append(time.monotonic())
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(shares))]
    start.wait()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(repr(faults[0]) if faults else [end for of_client in ends for end in of_client])


def load(target: Target, clients: int, trials: int) -> list[float]:
    """Has `clients` clients do `trials` round trips together; when each of them ended, in seconds from the start."""
    context = multiprocessing.get_context("spawn")
    shares = [trials // clients + (index < trials % clients) for index in range(clients)]
    processes = min(clients, MAX_CLIENT_PROCESSES)
    start = context.Barrier(processes + 1)
    results = context.Queue()
    workers = [
        context.Process(target=_client_process, args=(target, shares[index::processes], start, results), daemon=True)
        for index in range(processes)
    ]
    for worker in workers:
        worker.start()
    start.wait(timeout=120)
    began = time.monotonic()
    ends: list[float] = []
    for _ in workers:
        found = results.get(timeout=1800)
        if isinstance(found, str):
            raise RuntimeError(f"a client of {target.kind} failed: {found}")
        ends += [end - began for end in found]
    for worker in workers:
        worker.join()
    return sorted(ends)


def _trimtab_study(service: EmbeddedService) -> Target:
    import trimtab

    name = f"bench-{uuid.uuid4().hex[:12]}"
    trimtab.Client(service.grpc_address, token=service.token).create_study(
        name,
        space=[trimtab.Float("x", 0.0, 1.0), trimtab.Float("y", 0.0, 1.0)],
        objectives=[trimtab.Minimize("loss")],
        algorithm="random",
    )
    return Target("trimtab", service.grpc_address, name, service.token)


def _serve_optuna(url: str, port: int) -> None:
    import optuna

    _quiet_optuna()
    optuna.storages.run_grpc_proxy_server(optuna.storages.get_storage(url), host="127.0.0.1", port=port)


@contextmanager
def _optuna_server(service: EmbeddedService) -> Iterator[str]:
    """Optuna's proxy in a process of its own, over a new database of the service's PostgreSQL; its address."""
    postgres = Postgres(service.data_dir / "postgres")
    database = f"optuna_{uuid.uuid4().hex[:12]}"
    postgres.ensure_database(database)
    url = postgres.url(database).replace("postgresql://", "postgresql+psycopg2://", 1)
    port = _free_port()
    server = multiprocessing.get_context("spawn").Process(target=_serve_optuna, args=(url, port), daemon=True)
    server.start()
    try:
        _wait_for_port(port)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.join()


def _optuna_study(address: str) -> Target:
    import optuna

    _quiet_optuna()
    host, port = address.split(":")
    name = f"bench-{uuid.uuid4().hex[:12]}"
    optuna.create_study(study_name=name, storage=optuna.storages.GrpcStorageProxy(host=host, port=int(port)))
    return Target("optuna", address, name)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for_port(port: int) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _batches(service: EmbeddedService, batches: int) -> dict[str, float]:
    """Trials a second of one client that asks for TOGETHER trials and tells them one by one, and all in one call."""
    import trimtab

    target = _trimtab_study(service)
    study = trimtab.Client(target.address, token=target.token).get_study(target.study)

    def one_by_one(trials: Sequence[trimtab.Trial]) -> None:
        for trial in trials:
            study.tell(trial, {"loss": 1.0})

    def together(trials: Sequence[trimtab.Trial]) -> None:
        study.tell_many([(trial, {"loss": 1.0}) for trial in trials])

    seconds = {"tell": 0.0, "tell_many": 0.0}
    for _ in range(batches):
        for name, tell in (("tell", one_by_one), ("tell_many", together)):
            began = time.monotonic()
            tell(study.ask(TOGETHER))
            seconds[name] += time.monotonic() - began
    return {name: batches * TOGETHER / spent for name, spent in seconds.items()}


def _vizier_rates(trials: int, repetitions: int) -> dict[int, list[float]] | str:
    """Rates of OSS Vizier by the number of clients, or why there are none. It runs in an environment of its own."""
    uv = shutil.which("uv")
    if uv is None:
        return "skipped: OSS Vizier needs uv, which makes an environment for it"
    script = Path(__file__).with_name("vizier_peer.py")
    command = [uv, "run", "--quiet", "--isolated", "--no-project", *VIZIER, str(script)]
    arguments = [str(trials), str(repetitions), *map(str, CLIENTS)]
    try:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=4 * 3600, check=False)
    except subprocess.TimeoutExpired:
        return "skipped: OSS Vizier did not end within four hours"
    if done.returncode != 0:
        return "skipped: OSS Vizier cannot be installed or run here: " + (done.stderr.strip().splitlines() or ["?"])[-1]
    return {int(clients): rates for clients, rates in json.loads(done.stdout.splitlines()[-1]).items()}


def _rates(study: Callable[[], Target], trials: int, repetitions: int) -> dict[int, list[float]]:
    """Round trips a second by the number of clients, a new study each time."""
    return {clients: [trials / load(study(), clients, trials)[-1] for _ in range(repetitions)] for clients in CLIENTS}


def _medians(rates: dict[int, list[float]]) -> dict[int, float]:
    return {clients: statistics.median(values) for clients, values in rates.items()}


def _flatness(service: EmbeddedService, trials: int) -> dict[str, float]:
    """Round trips a second in a new study and, in turn with it, in one that has `trials` trials."""
    import trimtab

    targets = {"new": _trimtab_study(service), "long": _trimtab_study(service)}
    with trimtab.Client(service.grpc_address, token=service.token) as client:
        study = client.get_study(targets["long"].study)
        for _ in range(trials // TOGETHER):
            study.tell_many([(trial, {"loss": float(trial.params["x"])}) for trial in study.ask(TOGETHER)])
    rates: dict[str, list[float]] = {name: [] for name in targets}
    for _ in range(FLAT_ROUNDS):
        for name, target in targets.items():
            rates[name].append(FLAT_TRIALS / load(target, 8, FLAT_TRIALS)[-1])
    return {name: statistics.median(values) for name, values in rates.items()}


def run(quick: bool) -> Result:
    """See the module's text."""
    trials, repetitions = (500, 1) if quick else (2000, 5)
    long_trials = 4000 if quick else 100_000
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as folder, EmbeddedService(Path(folder)) as service:
        load(_trimtab_study(service), 8, 200)  # warms the connections and PostgreSQL's files
        ours = _rates(lambda: _trimtab_study(service), trials, repetitions)
        with _optuna_server(service) as address:
            optuna = _rates(lambda: _optuna_study(address), trials, repetitions)
        flat = _flatness(service, long_trials)
        batches = _batches(service, 3 if quick else 20)
    vizier = _vizier_rates(trials, repetitions)
    peers = {"optuna": _medians(optuna)}
    if not isinstance(vizier, str):
        peers["vizier"] = _medians(vizier)
    rows = []
    for clients, rate in _medians(ours).items():
        beside = {name: rates[clients] for name, rates in peers.items()}
        best = max(beside.values())
        note = vizier if isinstance(vizier, str) else ""
        rows.append(Row(f"ask+tell, {clients} clients", rate, "a second", peers=beside, note=note))
        reached = rate / best >= LEAST_RATIO
        rows.append(Row("… against the better", rate / best, "times", f"at least {LEAST_RATIO:g}", reached))
    slope = flat["long"] / flat["new"]
    note = f"8 clients, a second: {number(flat['long'])} and {number(flat['new'])}"
    label = f"a study of {long_trials:,} trials against a new one"
    rows.append(Row(label, slope, "times", f"at least {FLATNESS:g}", slope >= FLATNESS, note=note))
    ratio = batches["tell_many"] / batches["tell"]
    note = ", ".join(f"{name} {number(rate)} trials a second" for name, rate in batches.items())
    rows.append(Row(f"{TOGETHER} results in one call against as many calls", ratio, "times", note=note))
    return result(rows, trimtab=ours, optuna=optuna, vizier=vizier, long_study=flat, batches=batches)


if __name__ == "__main__":
    main("Ask and tell", run)
