"""Read a metric from the output of a benchmark tool. Times are in seconds, sizes in bytes and rates per second."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trimtab_agent.metrics.extract import NoValueError, number

# Seconds of the units that tools print.
SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "day": 86400.0,
}
# wrk counts a kilobyte as 1024 bytes.
BYTES = {"": 1.0, "K": 1024.0, "M": 1024.0**2, "G": 1024.0**3, "T": 1024.0**4}

# the names in an error: at most so many
_MOST_NAMES = 20


def by_tool(text: str, metric: Mapping[str, Any]) -> float:
    """Return the field `output_field` of the output of the tool `tool`. `of` selects one of several benchmarks.

    Raises:
        NoValueError: the text is not the tool's output, the benchmark is not in it, or it has no such field.
    """
    return number(_READERS[metric["tool"]](text, metric), metric)


def _pytest_benchmark(text: str, metric: Mapping[str, Any]) -> object:
    found = _list(_document(text, metric), "benchmarks", metric)
    one = _only([(_names(one, "fullname", "name"), one) for one in found], metric)
    return _get(_get(one, "stats", metric), metric["output_field"], metric)


def _hyperfine(text: str, metric: Mapping[str, Any]) -> object:
    found = _list(_document(text, metric), "results", metric)
    return _get(_only([(_names(one, "command"), one) for one in found], metric), metric["output_field"], metric)


def _google_benchmark(text: str, metric: Mapping[str, Any]) -> object:
    by_name: dict[str, list[Any]] = {}
    for one in _list(_document(text, metric), "benchmarks", metric):
        for name in _names(one, "run_name") or _names(one, "name"):
            by_name.setdefault(name, []).append(one)
    runs = _only([((name,), runs) for name, runs in by_name.items()], metric)
    for run in runs:
        if run.get("error_occurred"):
            raise NoValueError(f"the benchmark reports an error: {run.get('error_message', '')}")
    medians = [run for run in runs if run.get("aggregate_name") == "median"]
    if medians:  # of several repetitions
        [run] = medians[:1]
    elif len(runs) == 1 and "aggregate_name" not in runs[0]:
        [run] = runs
    else:
        raise NoValueError("the output has several results of the benchmark and no median of them")
    value = number(_get(run, metric["output_field"], metric), metric)
    if metric["output_field"].endswith("_time"):
        return value * _unit(str(run.get("time_unit", "ns")), SECONDS)
    return value


def _jmh(text: str, metric: Mapping[str, Any]) -> object:
    found = _document(text, metric)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise _foreign(metric)
    one = _get(_only([(_jmh_names(one), one) for one in found], metric), "primaryMetric", metric)
    field = metric["output_field"]
    if field == "score":
        value = _get(one, "score", metric)
    elif field == "error":
        value = _get(one, "scoreError", metric)
    else:
        value = _get(_get(one, "scorePercentiles", metric), f"{float(field[1:])}", metric)
    # us/op or ops/us
    above, _, below = str(_get(one, "scoreUnit", metric)).partition("/")
    factor = 1 / _unit(below, SECONDS) if above == "ops" else _unit(above, SECONDS)
    return number(value, metric) * factor


def _jmh_names(one: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a result, the full one first: method, mode and parameters."""
    method, mode = str(one.get("benchmark")), str(one.get("mode"))
    params = one.get("params")
    given = [f"{key}={value}" for key, value in params.items()] if isinstance(params, dict) else []
    return " ".join([method, mode, *given]), " ".join([method, *given]), method


_K6_RATES = {"requests": ("http_reqs", "rate"), "iterations": ("iterations", "rate")}
_K6_SHARES = {"failures": ("http_req_failed", "value"), "checks": ("checks", "value")}
_K6_STATISTICS = {"mean": "avg", "median": "med", "p90": "p(90)", "p95": "p(95)", "p99": "p(99)"}


def _k6(text: str, metric: Mapping[str, Any]) -> object:
    metrics = _get(_document(text, metric), "metrics", metric)
    field = metric["output_field"]
    if place := {**_K6_RATES, **_K6_SHARES}.get(field):
        return _get(_get(metrics, place[0], metric), place[1], metric)
    duration = _get(metrics, metric["of"] or "http_req_duration", metric)
    statistic = _K6_STATISTICS.get(field, field)
    if isinstance(duration, dict) and statistic not in duration:
        raise NoValueError(f"the summary has no {statistic}; start k6 with --summary-trend-stats=avg,{statistic}")
    return number(_get(duration, statistic, metric), metric) * SECONDS["ms"]


def _fio(text: str, metric: Mapping[str, Any]) -> object:
    jobs = _list(_document(text, metric), "jobs", metric)
    names = [_names(job, "jobname") for job in jobs]
    if len(set(names)) < len(names):
        raise NoValueError("several jobs have the same name; set group_reporting in fio's job file")
    job = _only(list(zip(names, jobs, strict=True)), metric)
    if job.get("error"):
        raise NoValueError(f"fio reports the error {job['error']} of the job")
    field = metric["output_field"]
    if field in ("iops", "bandwidth"):
        key = {"iops": "iops", "bandwidth": "bw_bytes"}[field]
        return sum(number(_get(_get(job, side, metric), key, metric), metric) for side in ("read", "write"))
    side, _, rest = field.partition("_")
    found = _get(job, side, metric)
    if not _get(found, "total_ios", metric):
        raise NoValueError(f"the job has no {side}s")
    if not rest.startswith("clat_"):
        return _get(found, {"iops": "iops", "bandwidth": "bw_bytes"}[rest], metric)
    latencies = _get(found, "clat_ns", metric)
    statistic = rest.removeprefix("clat_")
    if statistic.startswith("p"):
        value = _get(_get(latencies, "percentile", metric), f"{float(statistic[1:]):.6f}", metric)
    else:
        value = _get(latencies, statistic, metric)
    return number(value, metric) * SECONDS["ns"]


_PGBENCH = {
    # since PostgreSQL 14 tps excludes the first connections; earlier versions print both
    "tps": r"^tps = (\S+) \((?:without initial connection time|excluding connections establishing|including reconnect)",
    "latency_mean": r"^latency average = (\S+) ms",
    "latency_stddev": r"^latency stddev = (\S+) ms",
    "transactions": r"^number of transactions actually processed: (\d+)",
    "failures": r"^number of failed transactions: (\d+)",
}


def _pgbench(text: str, metric: Mapping[str, Any]) -> object:
    field = metric["output_field"]
    match = re.search(_PGBENCH[field], text, re.MULTILINE)
    if match is None:
        hint = "; start pgbench with --progress or --rate" if field == "latency_stddev" else ""
        raise NoValueError(f"{metric['source']} has no line of pgbench with {field}{hint}")
    factor = SECONDS["ms"] if field.startswith("latency") else 1.0
    return number(match.group(1), metric) * factor


_WRK_COLUMNS = {"latency_mean": 1, "latency_stddev": 2, "latency_max": 3}


def _wrk(text: str, metric: Mapping[str, Any]) -> object:
    field = metric["output_field"]
    if not re.search(r"^Requests/sec:", text, re.MULTILINE):
        raise _foreign(metric)
    if field == "errors":
        errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
        answers = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
        return sum(int(count) for match in (errors, answers) if match for count in match.groups())
    if field == "requests":
        return _find(r"^Requests/sec:\s+([\d.]+)", text, metric).group(1)
    if field == "bandwidth":
        match = _find(r"^Transfer/sec:\s+([\d.]+)([KMGT]?)B", text, metric)
        return number(match.group(1), metric) * BYTES[match.group(2)]
    if field in _WRK_COLUMNS:
        match = _find(r"^\s*Latency" + r"\s+(-?[\d.]+)([a-z]+)" * _WRK_COLUMNS[field], text, metric)
        value, unit = match.groups()[-2:]
    else:
        hint = "; start wrk with --latency"
        percent = field.removeprefix("latency_p")
        value, unit = _find(rf"^\s*{percent}(?:\.0+)?%\s+([\d.]+)([a-z]+)", text, metric, hint).groups()
    return number(value, metric) * _unit(unit, SECONDS)


# Patterns of sysbench's lines. Rates are those of the whole run, not of its intervals.
_SYSBENCH = {
    "transactions": r"^ +transactions: +\d+ +\((\S+) per sec\.\)",
    "queries": r"^ +queries: +\d+ +\((\S+) per sec\.\)",
    "errors": r"^ +ignored errors: +(\d+)",
    "latency_min": r"^ +min: +(\S+)$",
    "latency_mean": r"^ +avg: +(\S+)$",
    "latency_max": r"^ +max: +(\S+)$",
    "latency_percentile": r"^ +\d+th percentile: +(\S+)$",
}


def _sysbench(text: str, metric: Mapping[str, Any]) -> object:
    field = metric["output_field"]
    if not re.search(r"^General statistics:", text, re.MULTILINE):
        raise _foreign(metric)
    if field == "events":
        count = _find(r"^ +total number of events: +(\d+)", text, metric).group(1)
        seconds = number(_find(r"^ +total time: +(\S+)s$", text, metric).group(1), metric)
        if not seconds:
            raise NoValueError("the output of sysbench has a total time of 0 s")
        return number(count, metric) / seconds
    value = number(_find(_SYSBENCH[field], text, metric).group(1), metric)
    return value * SECONDS["ms"] if field.startswith("latency") else value


def _db_bench(text: str, metric: Mapping[str, Any]) -> object:
    field = metric["output_field"]
    # With --histogram a benchmark's latencies follow its line.
    line = r"^(\S+) +: +([\d.]+) micros/op (\d+) ops/sec .*$"
    found = list(re.finditer(line, text, re.MULTILINE))
    ends = [*(one.start() for one in found[1:]), len(text)]
    named = [((one[1],), (one, text[one.start() : end])) for one, end in zip(found, ends, strict=False)]
    one, part = _only(named, metric)
    if field == "latency_mean":
        return number(one[2], metric) * SECONDS["us"]
    if field == "ops":
        return one[3]
    if field == "found":
        return _find(r"\((\d+) of \d+ found\)", one[0], metric).group(1)
    if field == "bandwidth":
        return number(_find(r"; +([\d.]+) MB/s", one[0], metric).group(1), metric) * BYTES["M"]
    percentile = re.escape(field.removeprefix("latency_p"))
    pattern = rf"^Percentiles:.* P{percentile}: ([\d.]+)"
    return number(_find(pattern, part, metric, "; start db_bench with --histogram").group(1), metric) * SECONDS["us"]


def _kafka_producer(text: str, metric: Mapping[str, Any]) -> object:
    # The lines of intervals have no percentiles.
    pattern = (
        r"^\d+ records sent, (?P<records>[\d.]+) records/sec \((?P<bandwidth>[\d.]+) MB/sec\), "
        r"(?P<latency_mean>[\d.]+) ms avg latency, (?P<latency_max>[\d.]+) ms max latency, "
        r"(?P<latency_p50>\d+) ms 50th, (?P<latency_p95>\d+) ms 95th, (?P<latency_p99>\d+) ms 99th, "
        r"(?P<latency_p999>\d+) ms 99\.9th\."
    )
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise _foreign(metric)
    field = metric["output_field"].replace(".", "")
    factor = SECONDS["ms"] if field.startswith("latency") else BYTES["M"] if field == "bandwidth" else 1.0
    return number(match[field], metric) * factor


_READERS: Mapping[str, Callable[[str, Mapping[str, Any]], object]] = {
    "pytest-benchmark": _pytest_benchmark,
    "hyperfine": _hyperfine,
    "google-benchmark": _google_benchmark,
    "jmh": _jmh,
    "k6": _k6,
    "fio": _fio,
    "pgbench": _pgbench,
    "wrk": _wrk,
    "sysbench": _sysbench,
    "db_bench": _db_bench,
    "kafka-producer-perf-test": _kafka_producer,
}


def _document(text: str, metric: Mapping[str, Any]) -> Any:
    """Return the JSON document of a text. Lines before it and after it are not part of it."""
    for match in re.finditer(r"^[\[{]", text, re.MULTILINE):
        try:
            return json.JSONDecoder().raw_decode(text, match.start())[0]
        except (ValueError, RecursionError):  # a RecursionError: nested too deeply
            continue
    raise _foreign(metric)


def _foreign(metric: Mapping[str, Any]) -> NoValueError:
    return NoValueError(f"{metric['source']} is not the output of {metric['tool']}")


def _list(document: Any, key: str, metric: Mapping[str, Any]) -> list[Any]:
    found = document.get(key) if isinstance(document, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise _foreign(metric)
    return found


def _get(document: Any, key: str, metric: Mapping[str, Any]) -> Any:
    if not isinstance(document, dict):
        raise _foreign(metric)
    if document.get(key) is None:
        raise NoValueError(f"the output of {metric['tool']} has no {key}")
    return document[key]


def _names(one: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    return tuple(str(one[key]) for key in keys if one.get(key))


def _only(found: Sequence[tuple[tuple[str, ...], Any]], metric: Mapping[str, Any]) -> Any:
    """Return the benchmark that `of` names, or else the only one. The first of its names is shown in errors."""
    wanted = metric["of"]
    matching = [(names, one) for names, one in found if not wanted or wanted in names]
    if len(matching) == 1:
        return matching[0][1]
    listed = "; ".join(_shown(names for names, _ in (matching or found)))
    if not found:
        raise NoValueError(f"the output of {metric['tool']} has no benchmarks")
    if not matching:
        raise NoValueError(f"the output of {metric['tool']} has no {wanted!r}; it has: {listed}")
    raise NoValueError(f"the output of {metric['tool']} has {len(matching)} benchmarks; set `of` to one of: {listed}")


def _shown(names: Iterator[tuple[str, ...]]) -> list[str]:
    listed = [one[0] if one else "one without a name" for one in names]
    return [*listed[:_MOST_NAMES], *(["..."] if len(listed) > _MOST_NAMES else [])]


def _unit(name: str, units: Mapping[str, float]) -> float:
    if name not in units:
        raise NoValueError(f"{name!r} is not a known unit; known are {', '.join(units)}")
    return units[name]


def _find(pattern: str, text: str, metric: Mapping[str, Any], hint: str = "") -> "re.Match[str]":
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise NoValueError(f"the output of {metric['tool']} has no {metric['output_field']}{hint}")
    return match
