"""The measured tables: what was measured on which workload, and where the table is.

Each table is the whole grid of a study file, measured several times in random order by `trimtab measure-grid`;
`measure_tables.py` does it, and `replays.py` replays the tables. `data/README.md` describes the machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from service.replay import measured_table
from service.replay.subject import Subject

DATA = Path(__file__).parent / "data"
Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table and the grid of which it is.

    `grid`: the parameters with their values; further keys of a parameter are in `changes`. `default`: the literal
    default. `scaled`: the default of the scaled-down system, where it differs. `noise`: applications that run at the
    same time, with the mean seconds between two arrivals.
    """

    name: str
    component: str
    application: str
    metric: str = "seconds"
    grid: Mapping[str, Sequence[Any]]
    fixed: Values = field(default_factory=dict)
    conditions: Mapping[str, tuple[str, Sequence[Any]]] = field(default_factory=dict)
    constraints: Sequence[str] = ()
    default: Values
    scaled: Values | None = None
    replicates: int = 3
    arrivals: str | None = None
    noise: Sequence[str] = ()
    noise_seconds: float = 0.0

    @property
    def path(self) -> Path:
        """The file with the measurements."""
        return DATA / f"{self.name}.csv.gz"

    def study(self) -> dict[str, Any]:
        """Return the content of the study file."""
        parameters: dict[str, dict[str, Any]] = {}
        for name, values in self.grid.items():
            kind = "categorical" if self.categorical(name) else "ordinal"
            if all(isinstance(value, bool) for value in values):
                parameters[name] = {"type": "boolean", "default": self.default[name]}
                continue
            parameters[name] = {"type": kind, "values": list(values), "default": self.default.get(name, values[0])}
            if name in self.conditions:
                parent, active = self.conditions[name]
                parameters[name]["condition"] = {"parent": parent, "values": list(active)}
        for name, value in self.fixed.items():
            parameters[name] = {"type": "categorical", "values": [value]}
        return {
            "component": self.component,
            "application": self.application,
            "only": list(parameters),
            "parameters": parameters,
            "constraints": list(self.constraints),
            "objectives": [{"minimize": self.metric}],
        }

    def categorical(self, name: str) -> bool:
        """Return whether the values of a parameter have no order."""
        return any(isinstance(value, str) for value in self.grid[name])

    def subject(self, *, truth: str = "median") -> Subject:
        """Return the table as a subject of replays."""
        selection = measured_table.Selection(
            parameters=list(self.grid),
            metrics=[self.metric],
            categorical=[name for name in self.grid if self.categorical(name)],
            conditional=list(self.conditions),
            seconds="trial.seconds",
            default={name: _text(value) for name, value in self.default.items()},
            truth=truth,
        )
        return replace(measured_table.load(self.path, selection), name=self.name)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- small-read-optimizer: 108 points around table 4.5 of [robert-2021], scaled to a file of 256 MiB

_SRO_GRID = {
    "SRO_SEQUENCE_LENGTH": (50, 100, 750),
    "SRO_DSC_BINSIZE": (26214, 1048576, 10485756),
    "SRO_CLUSTER_THRESHOLD": (2, 6),
    "SRO_PREFETCH_SIZE": (262144, 524288, 1048576, 2097152, 4194304, 209715120),
}
# The sizes of the literal default are for files of 100 GB; the scaled default has a four-hundredth of them.
_SRO_DEFAULT = {
    "SRO_SEQUENCE_LENGTH": 100,
    "SRO_DSC_BINSIZE": 10485756,
    "SRO_CLUSTER_THRESHOLD": 2,
    "SRO_PREFETCH_SIZE": 209715120,
}
_SRO_SCALED = {**_SRO_DEFAULT, "SRO_DSC_BINSIZE": 26214, "SRO_PREFETCH_SIZE": 524288}
_SRO = [
    Table(
        name=pattern,
        component="small-read-optimizer",
        application=pattern,
        grid=_SRO_GRID,
        default=_SRO_DEFAULT,
        scaled=_SRO_SCALED,
    )
    for pattern in ("sro-1", "sro-2", "sro-3", "hotspots")
]
# Two writers and a reader of the same file, as in table 5.3 of [robert-2021], after every four runs of the default.
_SRO_NOISY_GRID = {
    **_SRO_GRID,
    "SRO_SEQUENCE_LENGTH": (100, 750),
    "SRO_PREFETCH_SIZE": (524288, 1048576, 4194304, 209715120),
}
_SRO_NOISY = [
    replace(
        _SRO[-1],
        name=f"hotspots-{arrivals}-noise",
        grid=_SRO_NOISY_GRID,
        replicates=4,
        arrivals=arrivals,
        noise=("noise-write", "noise-write", "noise-read"),
        noise_seconds=5.2,
    )
    for arrivals in ("fixed", "random")
]

# --- burst-buffer, on the slow directory without injected contention

_SBB_LIMITS = ("`ram-cache-size` + `flash-cache-size` <= 190",)
_SBB = [
    Table(
        name="checkpoint",
        component="burst-buffer",
        application="checkpoint",
        grid={
            "worker-threads": (1, 4, 10),
            "flash-destagers": (2, 4, 10, 16),
            "ram-cache-size": (16, 40),
            "ram-cache-threshold": (50, 80),
            "flash-cache-threshold": (50, 80),
        },
        default={
            "worker-threads": 10,
            "flash-destagers": 10,
            "ram-cache-size": 40,
            "ram-cache-threshold": 80,
            "flash-cache-threshold": 80,
        },
    ),
    Table(
        name="sbb-2",
        component="burst-buffer",
        application="sbb-2",
        grid={
            "polling-threads": (1, 2, 4),
            "worker-threads": (1, 4, 10),
            "ram-destagers": (2, 10),
            "ram-cache-size": (16, 40, 80),
            "flash-cache-size": (100, 150),
        },
        constraints=_SBB_LIMITS,
        default={
            "polling-threads": 2,
            "worker-threads": 10,
            "ram-destagers": 10,
            "ram-cache-size": 40,
            "flash-cache-size": 150,
        },
    ),
]
# A second job on the node, after every four runs of the default.
_SBB_NOISY = [
    replace(
        _SBB[-1],
        name=f"sbb-2-{arrivals}-noise",
        grid={**_SBB[-1].grid, "worker-threads": (4, 10), "ram-destagers": (10,)},
        arrivals=arrivals,
        noise=("noise",),
        noise_seconds=5.2,
    )
    for arrivals in ("fixed", "random")
]

# --- openmpi-collectives, 4 ranks on one processor

_SEGMENTS = (0, 4096, 16384, 32768, 65536, 131072, 262144)
_SMALL_SEGMENTS = (0, 1024, 2048, 4096, 8192, 16384, 32768)
_SEGMENTED = {
    "bcast": ("chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial"),
    "reduce": ("chain", "pipeline", "binary", "binomial", "in-order_binary"),
    "allreduce": ("segmented_ring",),
    "gather": ("linear_sync",),
}
_ALGORITHMS = {
    "bcast": ("ignore", "basic_linear", *_SEGMENTED["bcast"]),
    "reduce": ("ignore", "linear", "rabenseifner", *_SEGMENTED["reduce"]),
    "allreduce": (
        "ignore",
        "basic_linear",
        "nonoverlapping",
        "recursive_doubling",
        "ring",
        "rabenseifner",
        *_SEGMENTED["allreduce"],
    ),
    "gather": ("ignore", "basic_linear", "binomial", *_SEGMENTED["gather"]),
}


def _collective(name: str, size: int) -> Table:
    chains = name in ("bcast", "reduce")
    algorithm, segment, fanout = f"{name}_algorithm", f"{name}_segmentsize", f"{name}_fanout"
    return Table(
        name=f"{name}-{size // 1024}k",
        component="openmpi-collectives",
        application=name,
        metric="median_us",
        grid={
            algorithm: _ALGORITHMS[name],
            segment: _SEGMENTS if size > 1 << 16 else _SMALL_SEGMENTS,
            **({fanout: (1, 2, 3)} if chains else {}),
        },
        fixed={"bytes": size, "ranks": 4},
        conditions={
            segment: (algorithm, _SEGMENTED[name]),
            **({fanout: (algorithm, ("chain",))} if chains else {}),
        },
        default={algorithm: "ignore"},
    )


COLLECTIVES = [
    _collective("bcast", 1 << 20),
    _collective("reduce", 1 << 20),
    _collective("allreduce", 1 << 16),
    _collective("gather", 1 << 16),
]

# --- gcc-flags

_GCC = Table(
    name="gcc-flags",
    component="gcc-flags",
    application="kernels",
    grid={
        "march-native": (False, True),
        "tree-loop-vectorize": (False, True),
        "vect-cost-model": ("very-cheap", "cheap", "dynamic", "unlimited"),
        "unroll-loops": (False, True),
        "inline-functions": (False, True),
        "ipa-pta": (False, True),
    },
    default={
        "march-native": False,
        "tree-loop-vectorize": True,
        "vect-cost-model": "very-cheap",
        "unroll-loops": False,
        "inline-functions": True,
        "ipa-pta": False,
    },
)

QUIET = [*_SRO, *_SBB, *COLLECTIVES, _GCC]
NOISY = [*_SRO_NOISY, *_SBB_NOISY]
TABLES = {one.name: one for one in [*QUIET, *NOISY]}
