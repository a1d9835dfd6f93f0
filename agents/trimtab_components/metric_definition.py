"""Read the metrics of a component file, and the measurements that a running program writes."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from trimtab_components import tools
from trimtab_components.parameter_definition import read_unit
from trimtab_components.reader import Table
from trimtab_components.schema import NAME, NAME_ALLOWED, Metric, Stream

PROCESS = r"[^\s/][^/]{0,63}"
PROCESS_ALLOWED = "the name of a server's processes, as `ps -o comm` shows it"
FUNCTION = r"[^:]+\.py:[A-Za-z_][A-Za-z0-9_]*"
# Characters of one regular expression, and of all in a component. The service compiles them for everybody who may read.
LONGEST_PATTERN = 500
MOST_PATTERN_CHARACTERS = 2000
# The range of a PromQL query is the run: without it, a sample of an earlier trial could be the answer.
RUN = "$run"
LONGEST_QUERY = 2000
# Maximum seconds that a query, and the wait before it, may take.
LONGEST_TIMEOUT = 60.0
LONGEST_DELAY = 300.0
ADDRESS = r"https?://[^\s/@?#]+(/[^\s@?#]*)?"
TAKES = ("last", "first", "min", "max", "mean", "sum")
STREAM_KEYS = ("from", "pattern")
METRIC_KEYS = {
    "wall_time": ("type",),
    "cpu_time": ("type", "process"),
    "peak_memory": ("type", "process"),
    "bytes_written": ("type", "process"),
    "regex": ("type", "pattern", "from", "take", "unit", "unaffected"),
    "json": ("type", "path", "from", "unit", "unaffected"),
    "python": ("type", "function", "timeout", "unit", "unaffected"),
    "prometheus": ("type", "query", "url", "delay", "timeout", "unaffected"),
}
# The metrics of what a run, or a server outside the trial, uses.
USES = ("cpu_time", "peak_memory", "bytes_written")
# The metrics that need no mapping, as in `seconds: wall_time`.
PLAIN = ("wall_time", *USES)
# A metric with the name of a benchmark tool as its key, as in `{hyperfine: mean}`.
TOOL_KEYS = ("from", "of", "unaffected")
# the group of a pattern that gives the step of a measurement
STEP = "step"


class MetricReader:
    """Reads one file's metrics and streams."""

    def __init__(self, top: Table, find: Callable[[Table, str, str], Path]) -> None:
        """`find` returns the path of a file that the component refers to by a key."""
        self._top = top
        self._find = find
        self._pattern_characters = 0

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics by name; the running time alone if the file names none."""
        if "metrics" not in self._top:
            return {"seconds": Metric("seconds", "wall_time")}
        outer = self._top.table("metrics")
        metrics: dict[str, Metric] = {}
        for name in outer or ():
            assert outer is not None
            if not re.fullmatch(NAME, name):
                outer.fault(name, f"{name!r} is not {NAME_ALLOWED}")
            if outer.is_table(name):
                table = outer.table(name)
                assert table is not None
                metric = self._metric(name, table)
                metrics[name] = replace(metric, unaffected=table.flag("unaffected", metric.kind in USES))
            elif (kind := outer.text(name)) in PLAIN:
                metrics[name] = Metric(name, cast(Any, kind), unaffected=kind in USES)
            else:
                kinds, fields = ", ".join(METRIC_KEYS), ", ".join(tools.FIELDS)
                message = f"must be {', '.join(USES)}, wall_time or a mapping: {{type: TYPE}} with one of {kinds}"
                outer.fault(name, f"{message}, or {{TOOL: FIELD}} with one of {fields}")
        if outer is not None and not metrics:
            self._top.fault("metrics", "must name at least one metric")
        return metrics

    def streams(self) -> tuple[Stream, ...]:
        """Return where a running program writes measurements, and in which form."""
        streams = []
        for table in self._top.list_of_tables("stream"):
            table.allow(STREAM_KEYS)
            source, pattern = self._source(table), table.text("pattern")
            rule = self._compiled(table, pattern)
            if rule is not None and not set(rule.groupindex) - {STEP}:
                table.fault(
                    "pattern", "must have a group (?P<METRIC>...) around a number; (?P<step>...) alone is not enough"
                )
            streams.append(Stream(source, pattern))
        return tuple(streams)

    def _compiled(self, table: Table, pattern: str) -> "re.Pattern[str] | None":
        """Return the pattern of a table, or None after a fault. Compiling takes up to 1 ms for each character."""
        if "pattern" not in table:
            return None
        self._pattern_characters += len(pattern)
        if len(pattern) > LONGEST_PATTERN:
            table.fault("pattern", f"has {len(pattern)} characters; at most {LONGEST_PATTERN} are allowed")
        elif self._pattern_characters > MOST_PATTERN_CHARACTERS:
            table.fault("pattern", f"exceeds the {MOST_PATTERN_CHARACTERS} characters of all patterns together")
        else:
            try:
                return re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                table.fault("pattern", f"is not a regular expression: {error}")
        return None

    def _source(self, table: Table) -> str:
        source = table.text("from", "stdout")
        if Path(source).is_absolute() or ".." in Path(source).parts:
            table.fault("from", f"{source!r} is not stdout, stderr or a path inside the trial's work folder")
        return source

    def _metric(self, name: str, table: Table) -> Metric:
        if "type" not in table and (tool := next((key for key in table if key in tools.FIELDS), None)):
            return self._tool_metric(name, tool, table)
        if "type" not in table:
            table.reader.report(
                table.node,
                table.field,
                f"must have a `type` ({', '.join(METRIC_KEYS)}) or the name of a tool ({', '.join(tools.FIELDS)})",
            )
        kind = table.choice("type", tuple(METRIC_KEYS), "wall_time") if "type" in table else "wall_time"
        if "type" in table:
            table.allow(METRIC_KEYS[kind])
        source, unit = self._source(table), read_unit(table)
        if kind == "regex":
            table.require("pattern")
            pattern = table.text("pattern")
            rule = self._compiled(table, pattern)
            if rule is not None and rule.groups < 1:
                table.fault("pattern", "must have a group in parentheses around the number")
            return Metric(name, "regex", source, pattern=pattern, take=table.choice("take", TAKES, "last"), unit=unit)
        if kind == "json":
            table.require("path")
            return Metric(name, "json", source, path=table.text("path"), unit=unit)
        if kind == "python":
            table.require("function")
            written = table.text("function", pattern=FUNCTION, allowed="FILE.py:FUNCTION")
            file_name, _, function = written.partition(":")
            file = self._find(table, "function", file_name) if function else None
            timeout = table.seconds("timeout", 60.0, above=0)
            return Metric(name, "python", file=file, function=function, timeout=timeout, unit=unit)
        if kind in USES:
            return Metric(
                name, cast(Any, kind), process=table.text("process", pattern=PROCESS, allowed=PROCESS_ALLOWED)
            )
        if kind == "prometheus":
            return self._prometheus_metric(name, table)
        return Metric(name, "wall_time")

    def _prometheus_metric(self, name: str, table: Table) -> Metric:
        table.require("query")
        query = table.text("query")
        if len(query) > LONGEST_QUERY:
            table.fault("query", f"has {len(query)} characters; at most {LONGEST_QUERY} are allowed")
        elif "query" in table and RUN not in query:
            table.fault("query", f"must contain {RUN}, the duration of the run, as in avg_over_time(latency[{RUN}])")
        allowed = "http://HOST:PORT or https://HOST:PORT, with an optional path and without a password"
        url = table.text("url", pattern=ADDRESS, allowed=allowed) if "url" in table else ""
        delay, timeout = table.seconds("delay", 0.0), table.seconds("timeout", 10.0, above=0)
        if not 0 <= delay <= LONGEST_DELAY:
            table.fault("delay", f"{delay:g} is not from 0 to {LONGEST_DELAY:g} seconds")
        if timeout > LONGEST_TIMEOUT:
            table.fault("timeout", f"{timeout:g} is above {LONGEST_TIMEOUT:g} seconds")
        return Metric(name, "prometheus", query=query, url=url, delay=delay, timeout=timeout)

    def _tool_metric(self, name: str, tool: str, table: Table) -> Metric:
        table.allow((tool, *TOOL_KEYS))
        field = table.choice(tool, tools.FIELDS[tool], tools.FIELDS[tool][0])
        of = table.text("of")
        if tool == "k6" and "of" in table:
            # With a filter, such as http_req_duration{expected_response:true}, it is the same duration.
            if field not in tools.K6_STATISTICS:
                table.fault("of", f"is not allowed with {field}, which is not a statistic of a duration")
            elif of.partition("{")[0] not in tools.K6_DURATIONS:
                table.fault("of", f"{of!r} is not one of {', '.join(tools.K6_DURATIONS)}")
        elif tool not in tools.SEVERAL and "of" in table:
            table.fault("of", f"is not allowed with {tool}, whose output is about one run")
        return Metric(name, "tool", self._source(table), tool=tool, output_field=field, of=of)
