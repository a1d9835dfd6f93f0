"""The benchmark tools whose output a metric can name, and the fields that each of them gives.

Times are in seconds, sizes in bytes and rates per second. `trimtab_agent.metrics.tools` reads the output.
"""

from collections.abc import Mapping

_SIDES = ("read", "write")
_QUANTILES = ("latency_p50", "latency_p95", "latency_p99", "latency_p99.9")
_CLAT = ("mean", "max", "p50", "p90", "p95", "p99", "p99.9")

# The statistics of one of k6's durations.
K6_STATISTICS = ("mean", "median", "min", "max", "p90", "p95", "p99")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "pytest-benchmark": ("mean", "median", "min", "max", "stddev", "q1", "q3", "iqr", "ops"),
    "hyperfine": ("mean", "median", "min", "max", "stddev", "user", "system"),
    "google-benchmark": ("real_time", "cpu_time", "items_per_second", "bytes_per_second"),
    "jmh": ("score", "error", "p50", "p90", "p95", "p99", "p99.9"),
    "k6": (*K6_STATISTICS, "requests", "iterations", "failures", "checks"),
    "fio": (
        "iops",
        "bandwidth",
        *(f"{side}_{name}" for side in _SIDES for name in ("iops", "bandwidth", *(f"clat_{one}" for one in _CLAT))),
    ),
    "pgbench": ("tps", "latency_mean", "latency_stddev", "transactions", "failures"),
    "wrk": (
        "requests",
        "bandwidth",
        "latency_mean",
        "latency_stddev",
        "latency_max",
        "latency_p50",
        "latency_p75",
        "latency_p90",
        "latency_p99",
        "errors",
    ),
    "sysbench": (
        *("transactions", "queries", "events", "errors", "latency_min", "latency_mean", "latency_max"),
        "latency_percentile",
    ),
    "db_bench": ("latency_mean", "ops", "bandwidth", "found", "latency_p50", "latency_p99", "latency_p99.9"),
    "kafka-producer-perf-test": ("records", "bandwidth", "latency_mean", "latency_max", *_QUANTILES),
}

# The tools whose output can hold several benchmarks; the key `of` names one of them.
SEVERAL = ("pytest-benchmark", "hyperfine", "google-benchmark", "jmh", "fio", "db_bench")
# The durations that k6 measures itself, in milliseconds. `of` names one of them; a user's own trend has no known unit.
K6_DURATIONS = (
    "http_req_duration",
    "http_req_waiting",
    "http_req_connecting",
    "http_req_tls_handshaking",
    "http_req_blocked",
    "http_req_sending",
    "http_req_receiving",
    "grpc_req_duration",
    "ws_connecting",
    "ws_session_duration",
    "iteration_duration",
    "group_duration",
)
