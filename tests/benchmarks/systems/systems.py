"""The systems of the comparison: a component of the agent, one of its study files, and the settings that a guide gives.

The guides were chosen before the first run. A guide that asks for more than a component allows has the nearest value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from service.core.problem import Objective, Problem
from service.core.space import Scalar, Space
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_components.schema import Component, Parameter, Range, Switch

WORKLOADS = Path(__file__).resolve().parents[3] / "agents" / "workloads"


@dataclass(frozen=True)
class System:
    """A component with a study file.

    `trials` are all runs that an optimiser has. `auto` uses up to `check` of them for its final check. `expert` are the
    settings of `guide`; parameters that it does not name have their defaults. `others` are applications of the
    component that no tool has seen, on which the recommendation of `auto` is measured as well.
    """

    name: str
    component: str
    file: str = "study.yml"
    trials: int = 40
    check: int = 12
    expert: Mapping[str, Scalar] = field(default_factory=dict)
    guide: str = ""
    others: tuple[str, ...] = ()

    @cached_property
    def study(self) -> Mapping[str, Any]:
        """The content of the study file."""
        described: Mapping[str, Any] = yaml.safe_load(self.path.read_text())
        return described

    @property
    def path(self) -> Path:
        """The study file."""
        return WORKLOADS / self.component / self.file

    @cached_property
    def loaded(self) -> Component:
        """The component, as an agent reads it."""
        return load(WORKLOADS / self.component / "component.yaml", Generator(Path("unused")))

    @cached_property
    def problem(self) -> Problem:
        """The problem of the study file, for optimisers that run without a service."""
        parameters = self.loaded.parameters
        names = self.study.get("only", list(parameters))
        space = {
            "parameters": [_described(parameters[name]) for name in names],
            "constraints": self.study.get("constraints", []),
        }
        [objective] = self.study["objectives"]
        return Problem.build(
            Space.from_json(space),
            [Objective(objective["minimize"], "minimize", objective.get("unit", ""))],
            outcome_constraints=self.study.get("outcome_constraints", ()),
        )


def _described(parameter: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {"name": parameter.name, "default": parameter.default}
    domain = parameter.domain
    if isinstance(domain, Range):
        found |= {"type": domain.kind, "min": domain.min, "max": domain.max, "log": domain.log}
    elif isinstance(domain, Switch):
        found["type"] = "bool"
    else:
        found |= {"type": "ordinal" if domain.ordered else "categorical", "values": list(domain.values)}
    if parameter.condition is not None:
        found["condition"] = {"parent": parameter.condition.parent, "values": list(parameter.condition.values)}
    return found


SYSTEMS = {
    one.name: one
    for one in [
        System(
            "sqlite-durable",
            "sqlite",
            "durable.yml",
            expert={"journal_mode": "wal", "mmap_size": 536870912},
            guide="SQLite's page on WAL, and its page on memory-mapped I/O",
        ),
        System(
            "compression",
            "compression",
            "smaller.yml",
            expert={"strategy": 4, "wlog": 21, "clog": 18, "hlog": 19, "slog": 3, "mml": 5, "tlen": 4},
            guide="zstd's own level 6, which takes about three times the time of level 3",
            others=("html", "source"),
        ),
        System(
            "compression-time",
            "compression",
            expert={"strategy": 1, "wlog": 19, "clog": 13, "hlog": 14, "slog": 1, "mml": 7, "tlen": 0},
            guide="zstd's own level 1",
        ),
        System(
            "redis",
            "redis",
            expert={"hash-max-listpack-entries": 1000, "zset-max-listpack-entries": 1000},
            guide="Instagram's advice for hashes: 1,000 entries; the same for sorted sets",
        ),
        System(
            "redis-cache",
            "redis",
            "cache.yml",
            expert={"maxmemory-policy": "allkeys-lru", "maxmemory-samples": 10},
            guide="redis.conf: 10 samples approximate true LRU",
        ),
        System(
            "sqlite-read",
            "sqlite",
            expert={"journal_mode": "wal", "mmap_size": 536870912, "cache_size": 16000},
            guide="common advice: WAL, memory-mapped I/O, a cache of 64 MB",
        ),
        System("memcached", "memcached"),
        System(
            "jvm-jobs",
            "jvm-jobs",
            expert={"tier": 1, "collector": "Serial"},
            guide="common advice for short jobs: the first compiler alone, and the serial collector",
            others=("search", "javac"),
        ),
        System(
            "runtime-gc",
            "runtime-gc",
            expert={"gc0": 50000, "gc1": 20, "gc2": 20},
            guide="common advice for CPython: 50,000 objects, and twice the other thresholds",
        ),
        System(
            "nginx-proxy",
            "nginx-proxy",
            expert={
                "connection": '""',
                "keepalive": 32,
                "log": "buffer=64k flush=1s",
                "workers": 2,
                "sendfile": "on",
                "tcp_nopush": "on",
            },
            guide="nginx's own articles: kept connections, a buffer for the log, one worker for a processor, sendfile",
        ),
        System(
            "rocksdb",
            "rocksdb",
            expert={
                "bloom_bits": 10,
                "block_size": 16384,
                "cache_size": 67108864,
                "cache_index_and_filter_blocks": True,
                "compression_type": "lz4",
            },
            guide="RocksDB's page on basic tuning",
        ),
        System(
            "thread-waits",
            "thread-waits",
            expert={"threads": 1},
            guide="Tesseract's page on performance: OMP_THREAD_LIMIT=1",
        ),
        System(
            "mariadb",
            "mariadb",
            expert={"innodb_buffer_pool_size": 536870912},
            guide="MySQLTuner: a pool that holds the data, as far as the limit on memory allows it",
            others=("read_write",),
        ),
        System(
            "kafka-producer",
            "kafka-producer",
            expert={"batch.size": 131072, "linger.ms": 50, "compression.type": "lz4"},
            guide="Confluent's advice for throughput: batches of 100 to 200 kB, a wait of 10 to 100 ms, lz4",
        ),
        System(
            "spark",
            "spark",
            expert={"spark.sql.shuffle.partitions": 6},
            guide="Spark's page on tuning: two to three tasks for each processor",
            others=("sessions",),
        ),
    ]
}
