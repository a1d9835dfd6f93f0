"""Many replays in parallel, stored as they finish, so that an interrupted comparison can continue."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from service.core.errors import AlreadyExists, JsonValue, TrimtabError
from service.replay.replay_record import Contestant, Run
from service.replay.run import Terms, replay
from service.replay.subject import Subject

# Each process uses one thread for linear algebra, because there may be as many processes as cores.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_RUNS, _PLAN = "runs.jsonl", "plan.json"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The replays to run: every contestant with every seed, on one subject."""

    subject: Subject
    terms: Terms
    contestants: Sequence[Contestant]
    seeds: Sequence[int]

    def __len__(self) -> int:
        return len(self.contestants) * len(self.seeds)

    def pairs(self) -> list[tuple[Contestant, int]]:
        """Return the replays in their order: each seed for every contestant, so that early comparisons are fair."""
        return [(contestant, seed) for seed in self.seeds for contestant in self.contestants]

    def conditions(self) -> dict[str, JsonValue]:
        """Return the conditions that comparable runs share: the subject with all its measurements, and the terms."""
        subject, terms = self.subject, self.terms
        digest = hashlib.sha256(subject.truth.tobytes())
        digest.update(repr(sorted((subject.rows or {}).items())).encode())
        return {
            "subject": subject.name,
            "problem": subject.problem.to_json(),
            "digest": digest.hexdigest(),
            "budget": terms.budget,
            "start": terms.start,
            "stopping": terms.stopping,
            "options": {name: dict(sorted(given.items())) for name, given in sorted(terms.options.items())},
        }


@dataclass
class Store:
    """A folder with the runs of a plan, one run in each line."""

    folder: Path
    runs: dict[tuple[Contestant, int], Run] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, plan: Plan) -> Store:
        """Return the folder with its runs. Raises AlreadyExists if it has the runs of another comparison."""
        folder.mkdir(parents=True, exist_ok=True)
        conditions, known = plan.conditions(), folder / _PLAN
        if known.exists():
            before = json.loads(known.read_text())
            now = json.loads(json.dumps(conditions))
            if before != now:
                other = ", ".join(key for key in now if before.get(key) != now[key])
                raise AlreadyExists(
                    "other_replay",
                    f"{folder} has a replay with other conditions ({other} differ). Choose another folder with --out.",
                )
        else:
            partial = known.with_suffix(".part")
            partial.write_text(json.dumps(conditions, indent=1) + "\n")
            partial.replace(known)
        store = cls(folder)
        path = folder / _RUNS
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                run = Run.from_json(json.loads(line))
            except (ValueError, TypeError):  # The line was cut off when a process was killed; the run is repeated.
                continue
            store.runs[run.contestant, run.seed] = run
        return store

    def add(self, run: Run) -> None:
        """Write a run to the disk and add it."""
        path = self.folder / _RUNS
        with path.open("a+b") as file:
            # The previous line may have been cut off.
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(run.to_json()).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.runs[run.contestant, run.seed] = run

    def of(self, plan: Plan) -> list[Run]:
        """Return the finished runs of the plan, in its order."""
        return [self.runs[pair] for pair in plan.pairs() if pair in self.runs]


def make(plan: Plan, store: Store, jobs: int, each: Callable[[Run], None] = lambda run: None) -> None:
    """Execute the runs that the store lacks, `jobs` at a time; `each` is called with every new one.

    A KeyboardInterrupt or a failed run (RuntimeError) stops all; runs that have finished by then are kept.
    """
    missing = [pair for pair in plan.pairs() if pair not in store.runs]
    if not missing:
        return
    # Processes are spawned, because torch's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with _one_thread_each():
        pool = ProcessPoolExecutor(
            min(jobs, len(missing)), mp_context=context, initializer=_begin, initargs=(plan.subject, plan.terms)
        )
        children: Sequence[multiprocessing.process.BaseProcess] = ()
        try:
            before = set(multiprocessing.active_children())
            futures = [pool.submit(_make, contestant, seed) for contestant, seed in missing]
            children = [child for child in multiprocessing.active_children() if child not in before]
            for future in as_completed(futures):
                run = future.result()
                store.add(run)
                each(run)
        except BaseException:
            for child in children:
                child.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before: Mapping[str, str | None] = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# The subject and the terms of a worker process.
_given: tuple[Subject, Terms] | None = None


def _begin(subject: Subject, terms: Terms) -> None:
    # Ctrl-C reaches every process of the terminal, but only the parent stops the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    global _given
    _given = subject, terms


def _end_with_parent() -> None:
    """End this process with its parent; without this, the workers of a killed parent would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _make(contestant: Contestant, seed: int) -> Run:
    assert _given is not None
    try:
        return replay(_given[0], contestant, seed, _given[1])
    except TrimtabError as error:  # This error cannot be pickled for the parent.
        raise RuntimeError(f"{contestant} with seed {seed} failed: {error.message}") from None
