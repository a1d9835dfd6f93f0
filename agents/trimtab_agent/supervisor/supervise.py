"""One trial from its specification to its result: build, header commands, application, metrics.

The folder of the trial contains `spec.json` (runners.base.JobSpec). The supervisor writes `pid`, `log`, `stdout`,
`stderr` and, at the end, `result.json`.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trimtab_agent.files import give, sync_folder, write_atomically
from trimtab_agent.signals import HaltedError, Signals
from trimtab_agent.supervisor import cgroup, machine, process, quiet, servers, tree, usage
from trimtab_agent.supervisor.capture import Capture, last_lines

if TYPE_CHECKING:
    from trimtab_agent.metrics.streaming import Streams

Spec = Mapping[str, Any]
# Looks at a run, or at its end if the argument is true; returns the seconds until the next look.
Watch = Callable[[bool], float]

# Seconds to read one metric by regular expression: a bad pattern can take very long.
EXTRACTION_TIME = 30.0
# Seconds after which a query that has used up its own time ends in any case.
QUERY_MARGIN = 2.0
# Metrics of what the run, or a server, uses. Other processes hardly affect them.
USES = ("cpu_time", "peak_memory", "bytes_written")
# How many steps the result names, for traces.
MOST_STEPS = 50
# Seconds between two readings of the measurements in files.
STREAM_INTERVAL = 0.25


class TrialOverError(Exception):
    """The trial has ended without metrics. `code` and `values` stand for the first line of `reason`."""

    def __init__(self, outcome: str, reason: str, code: str = "", **values: object) -> None:
        self.outcome = outcome
        self.reason = reason
        self.code = code
        self.values = {name: str(value) for name, value in values.items()}
        super().__init__(reason)


def main(number: int, group: str) -> None:
    """Run the trials whose folders arrive through a socket, until the agent closes its end.

    Args:
        number: the socket's file descriptor. Each message is a folder's path with the writing end of a pipe. The open
            pipe tells the agent that the trial is in progress.
        group: the control group of this process and all its trials; empty: none.
    """
    os.set_inheritable(number, False)
    if group:
        cgroup.enter(group)
    process.adopt_orphans()
    signals = Signals()
    with socket.socket(fileno=number) as agent:
        while True:
            message, handles, _, _ = socket.recv_fds(agent, 4096, 1)
            if not message:
                return
            os.set_inheritable(handles[0], False)
            work_on(message.decode(), signals)
            os.close(handles[0])


def work_on(folder: str, signals: Signals) -> None:
    """Run the trial in `folder` and store its result."""
    signals.follow(os.path.join(folder, "cancel"))
    tell_pid(folder)
    result = Supervisor(folder, read_spec(folder), signals).run()
    os.chdir("/")  # the trial's folder may be removed
    store(folder, result, signals)


def read_spec(folder: str) -> dict[str, Any]:
    """Return the fields of `runners.base.JobSpec`, which this process, of the standard library alone, does not load."""
    with open(os.path.join(folder, "spec.json"), encoding="utf-8") as file:
        spec: dict[str, Any] = json.load(file)
    return spec


def tell_pid(folder: str) -> None:
    """Record which process works on the trial."""
    with open(os.path.join(folder, "pid"), "w", encoding="ascii") as file:
        file.write(f"{os.getpid()} {start_ticks(os.getpid())}")


def start_ticks(pid: int) -> int:
    """Return the start time of a process in kernel ticks. With the pid it identifies a process uniquely.

    Raises:
        OSError: there is no such process.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def store(folder: str, result: Mapping[str, Any], signals: Signals) -> None:
    """Store the result durably, in disk space that was reserved before the trial began."""
    reserved, final = os.path.join(folder, "result.reserved"), os.path.join(folder, "result.json")
    data = json.dumps(result).encode()
    while True:
        try:
            handle = os.open(reserved, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(handle, data, 0)
            os.ftruncate(handle, len(data))
            os.fsync(handle)
            os.close(handle)
            os.rename(reserved, final)
            sync_folder(folder)
            return
        except FileNotFoundError:
            return  # the folder is gone: nobody waits for the result
        except OSError:
            if signals.stopped:
                return
            time.sleep(0.5)


class Supervisor:
    """Runs the steps of one trial."""

    def __init__(self, folder: str, spec: Spec, signals: Signals, node: str = "", job: str = "") -> None:
        """`node`: its name; "": the machine's own. `job`: see waiting.Waiting."""
        self.folder = folder
        self.job = job
        self.spec = spec
        self.signals = signals
        self.node = node or os.uname().nodename
        self.log = Capture(os.path.join(folder, "log"), spec["log_limit"])
        self.streams = {name: os.path.join(folder, name) for name in ("stdout", "stderr")}
        self.elapsed = 0.0
        self.build_seconds: float | None = None
        self.build_lock: int | None = None
        # Why the application's output could not be stored; empty if it was.
        self.output_failure = ""
        self.cpus = frozenset(spec["cpus"] or os.sched_getaffinity(0))
        # What was measured of the machine during each run.
        self.loads: list[quiet.Load] = []
        # Why metrics that the study does not need have no value, by name.
        self.missing: dict[str, str] = {}
        # The servers and the processes that the metrics of the present run are about.
        self.servers: servers.Servers | None = None
        self.usage: usage.Usage | None = None
        # The first steps with their begin and end in seconds since 1970, for traces.
        self.steps: list[tuple[str, float, float]] = []

    def run(self) -> dict[str, Any]:
        """Run the trial and return the fields of runners.base.JobResult."""
        outcome, reason, metrics = "completed", "", {}
        code: str = ""
        values: dict[str, str] = {}
        try:
            self._build()
            metrics = self._measure()
        except TrialOverError as verdict:
            outcome, reason = verdict.outcome, verdict.reason
            code, values = verdict.code, verdict.values
        except Exception as error:  # noqa: BLE001  any error must end the trial with a reason
            outcome, reason = "failed", f"the trial's supervisor failed: {type(error).__name__}: {error}"
        finally:
            # The lock has kept the build's output from being evicted.
            if self.build_lock is not None:
                os.close(self.build_lock)
        if self.signals.stopped and outcome != "completed":
            outcome, reason, code, values = "cancelled", "cancelled", "", {}
        doubts = quiet.doubts(self.loads)
        if self.elapsed:
            for remark in (*quiet.setting(self.cpus).values(), *doubts.values()):
                self.log.add(f"[warning: {remark}]\n".encode())
            for name in self._disturbed_times(doubts):
                self.log.add(
                    f"[hint: CPU time depends less on other processes: metrics: {{{name}: cpu_time}}]\n".encode()
                )
        if reason:
            self.log.add(f"[{outcome}] {reason}\n".encode())
        self.log.close()
        return {
            "outcome": outcome,
            "reason": reason,
            "reason_code": code,
            "reason_values": values,
            "metrics": metrics,
            "missing": {name: why for name, why in self.missing.items() if name not in metrics},
            "elapsed": self.elapsed,
            "node": self.node,
            "build_seconds": self.build_seconds,
            "doubt": quiet.text(doubts),
            "interference": self._interference() if self.loads else None,
            "machine": self._machine() if self.elapsed else "",
            "steps": self.steps,
        }

    def _disturbed_times(self, doubts: Mapping[str, str]) -> list[str]:
        """Return the metrics of the study that are running times, if other processes disturbed them."""
        if "load" not in doubts:
            return []
        wanted = self.spec["required"]
        return [one["name"] for one in self.spec["metrics"] if one["kind"] == "wall_time" and one["name"] in wanted]

    def _interference(self) -> dict[str, Any]:
        """Return the fields of the service's interference."""
        unaffected = [metric["name"] for metric in self.spec["metrics"] if metric.get("unaffected")]
        return quiet.interference(self.loads) | {"unaffected": unaffected}

    def _machine(self) -> str:
        """Describe the machine, with the compiler of PATH if the component is built."""
        compiler = "gcc" if self.spec["build"] is not None else ""
        return machine.describe(compiler, self.spec["env"])

    # -- steps

    def _build(self) -> None:
        build = self.spec["build"]
        if build is None:
            return
        from trimtab_agent.supervisor import build_cache

        try:
            self.build_lock, self.build_seconds = build_cache.use(
                build["entry"], build["limit"], lambda: self._make(build), lambda: self.signals.stopped
            )
        except InterruptedError:
            raise TrialOverError("cancelled", "cancelled") from None
        except OSError as error:
            raise TrialOverError("failed", f"the build cache cannot be used: {error}") from None

    def _make(self, build: Spec) -> None:
        user = self.spec.get("user")
        if user is not None:
            give(build["entry"], user["uid"], user["gid"])
        self._run_build(build)
        if user is not None:
            # A later trial must read what others use, and not change it.
            give(build["entry"], os.geteuid(), os.getegid())
            os.chmod(build["entry"], 0o755)  # nosec B103 - trials of the other user read it

    def _run_build(self, build: Spec) -> None:
        deadline = time.monotonic() + build["timeout"]
        for argv in build["commands"]:
            left = deadline - time.monotonic()
            ended = self._step("build", argv, build["env"], build["entry"], seconds=left)
            if ended.timed_out:
                most = f"{build['timeout']:g}"
                text = self._with_output(f"build: did not end within {most} s")
                raise TrialOverError("infeasible", text, "build_too_slow", seconds=most)
            self._expect_not_killed("build", ended)
            if ended.code != 0:
                outcome = "failed" if ended.code in self.spec["failed_exit_codes"] else "infeasible"
                text = self._with_output(f"build: {argv[0]} {ended.reported()}")
                raise TrialOverError(outcome, text, "build_failed", program=argv[0], exit_code=ended.code)

    def _measure(self) -> dict[str, float]:
        spec = self.spec
        deadline = time.monotonic() + spec["timeout"]
        runs: list[dict[str, float]] = []
        for _ in range(spec["repeats"]):
            for argv in spec["header"]:
                ended = self._step("header", argv, spec["base_env"], spec["work"], seconds=deadline - time.monotonic())
                if ended.timed_out:
                    most = f"{spec['timeout']:g}"
                    text = self._with_output(f"header: {argv[0]} did not end within the trial's {most} s")
                    raise TrialOverError("failed", text, "header_too_slow", program=argv[0], seconds=most)
                if ended.code != 0:
                    text = self._with_output(f"header: {argv[0]} {ended.reported()}")
                    raise TrialOverError("failed", text, "header_failed", program=argv[0], exit_code=ended.code)
            ended = self._run_application(deadline)
            began = time.time()
            runs.append(self._metrics(ended.seconds, began))
            self._note_step("metrics", began)
        from trimtab_agent.metrics.extract import aggregate

        common = [name for name in runs[0] if all(name in run for run in runs)]
        return {name: aggregate([run[name] for run in runs], spec["aggregate"]) for name in common}

    def _run_application(self, deadline: float) -> process.Ended:
        spec = self.spec
        captures = [Capture(path, spec["stream_limit"]) for path in self.streams.values()]
        watches = self._observe()
        group = spec["cgroup"] or (cgroup.of_job(os.environ.get("SLURM_JOB_ID", "")) if self.job else "")
        watch = quiet.Watch(self.cpus, group=group, job=self.job)
        watches.append(watch.look)
        began = time.monotonic()
        reported = self._told(began)
        self._tell_elapsed(f"{began}")
        try:
            left = deadline - began
            ended = self._step(
                "command",
                spec["command"],
                spec["env"],
                spec["cwd"],
                seconds=left,
                captures=captures,
                reported=reported,
                watches=watches,
            )
        except TrialOverError:
            self.elapsed += time.monotonic() - began
            self._tell_elapsed("-")
            raise
        finally:
            for capture in captures:
                capture.close()
            if reported:
                reported.close()
        self.output_failure = captures[0].failure or captures[1].failure
        self.elapsed += ended.seconds
        if self.usage:
            self.usage.note(ended.peak)
        self.loads.append(watch.load())
        self._tell_elapsed("-")
        if ended.timed_out:
            most = f"{spec['timeout']:g}"
            text = self._with_output(f"did not end within {most} s")
            raise TrialOverError("infeasible", text, "application_too_slow", seconds=most)
        if ended.code in spec["failed_exit_codes"]:
            text = self._with_output(f"ended with exit code {ended.code}, which `exit_codes: failed` lists")
            raise TrialOverError("failed", text, "listed_exit_code", exit_code=ended.code)
        self._expect_not_killed("command", ended)
        if ended.code != 0:
            text = self._with_output(ended.reported())
            raise TrialOverError("infeasible", text, "application_failed", exit_code=ended.code)
        return ended

    def _observe(self) -> list[Watch]:
        """Begin to observe what the metrics need to know of the run and of servers; return what looks at them."""
        watches: list[Watch] = []
        asked = [metric for metric in self.spec["metrics"] if metric["kind"] in USES]
        if of_servers := [metric for metric in asked if metric.get("process")]:
            owner = self._owner()
            self.servers = servers.Servers(
                {metric["process"] for metric in of_servers},
                os.geteuid() if owner is None else owner,
                {metric["process"] for metric in of_servers if metric["kind"] == "peak_memory"},
            )
            watches.append(self.servers.look)
        if any(metric["kind"] != "cpu_time" and not metric.get("process") for metric in asked):
            self.usage = usage.Usage(self._further)
            watches.append(self.usage.look)
        return watches

    def _further(self) -> list[int]:
        """Return the processes of the run that a scheduler has started."""
        return tree.marked(process.JOB_VARIABLE, self.job) if self.job else []

    def _expect_not_killed(self, step: str, ended: process.Ended) -> None:
        """Check that nobody has killed the command: time and memory limits of the trial were checked before."""
        if ended.killed:
            text = f"{step}: {ended.reported()}, and no limit of the trial explains it: somebody or the kernel did it"
            raise TrialOverError("failed", self._with_output(text), "killed", step=step)

    def _told(self, began: float) -> "Streams | None":
        """Return the reader of measurements for the first run of a trial; later runs would repeat the steps."""
        if not self.spec.get("stream") or self.elapsed:
            return None
        from trimtab_agent.metrics.streaming import Streams

        return Streams(
            self.spec["stream"],
            os.path.join(self.folder, "measurements"),
            self.spec["work"],
            self.signals,
            lambda: time.monotonic() - began,
            lambda message: self.log.add(f"[stream: {message}]\n".encode()),
            self.spec.get("run", 0),
            self._owner(),
            {metric["name"]: metric.get("unit", "") for metric in self.spec["metrics"]},
        )

    def _tell_elapsed(self, began: str) -> None:
        """Record, for the heartbeat, how long the application has run before and when it started again."""
        with suppress(OSError):  # on a full disk the trial continues, and the service does not see its running time
            write_atomically(os.path.join(self.folder, "running"), f"{self.elapsed} {began}".encode())

    def _step(
        self,
        step: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        *,
        seconds: float,
        captures: Sequence[Capture] = (),
        reported: "Streams | None" = None,
        watches: Sequence[Watch] = (),
    ) -> process.Ended:
        """Run a command. Its output goes to the log, to `captures` (none or one per stream) and to `reported`."""
        self.log.add(f"$ {self._line(step, argv)}\n".encode())
        self.log.forget()
        sinks: list[list[process.Sink]] = [[self.log, *captures[:1]], [self.log, *captures[1:]]]
        if reported:
            for sink, name in zip(sinks, self.streams, strict=True):
                sink += filter(None, [reported.sources.get(name)])
        own = self.spec["memory_limit"]
        # A limit of the agent or of a job may also end other trials, so that it counts only if the command was killed.
        groups, limit = ([self.spec["cgroup"]], own) if own else cgroup.memory_limit()
        killed = sum(map(cgroup.memory_kills, groups))
        began = time.time()
        try:
            ended = process.run(
                argv,
                env,
                cwd,
                seconds=seconds,
                grace=self.spec["grace"],
                stdout=sinks[0],
                stderr=sinks[1],
                signals=self.signals,
                cpus=self.spec["cpus"],
                watch=_looks(watches, reported) if watches else None,
                # The function of a metric belongs to the agent, and its answer too.
                user=None if step == "metric" else self.spec.get("user"),
            )
        except process.NotStartedError as error:
            raise TrialOverError("failed", f"{step}: {error}") from None
        finally:
            self._note_step(step, began)
        if self.signals.stopped:
            raise TrialOverError("cancelled", "cancelled")
        if (own or ended.killed) and sum(map(cgroup.memory_kills, groups)) > killed:
            most = limit >> 20
            reason = f"{step}: out of memory: it needs more than {most} MiB, the limit of a trial on this agent"
            text = self._with_output(reason)
            raise TrialOverError("infeasible", text, "out_of_memory", step=step, mebibytes=most)
        return ended

    def _note_step(self, step: str, began: float) -> None:
        # The space that is reserved for the result is bounded.
        if len(self.steps) < MOST_STEPS:
            self.steps.append((step, began, time.time()))

    def _line(self, step: str, argv: Sequence[str]) -> str:
        """Return a command as the log shows it."""
        if not self.spec.get("log_commands", True):
            return f"[{step}]"
        return _shown(next((shown for own, shown in self.spec.get("masked", ()) if own == list(argv)), argv))

    def _with_output(self, reason: str) -> str:
        output = last_lines(bytes(self.log.recent))
        return f"{reason}\n{output}" if output else reason

    # -- metrics

    def _metrics(self, seconds: float, ended: float) -> dict[str, float]:
        """Return the metrics of a run of some seconds that has ended at a time, in seconds since 1970."""
        found: dict[str, float] = {}
        for metric in self.spec["metrics"]:
            name = metric["name"]
            try:
                found[name] = self._metric(metric, seconds, ended)
            except _NoMetricError as error:
                if name in self.spec["required"] and self.output_failure:
                    reason = f"metric {name!r}: the output could not be stored: {self.output_failure}"
                    raise TrialOverError("failed", reason) from None
                if name in self.spec["required"]:
                    raise TrialOverError(error.outcome, f"metric {name!r}: {error}") from None
                self.log.add(f"[metric {name!r} omitted: {error}]\n".encode())
                self.missing[name] = str(error).partition("\n")[0]
        return found

    def _metric(self, metric: Spec, seconds: float, ended: float) -> float:
        if metric["kind"] == "wall_time":
            return seconds
        if metric["kind"] in USES:
            return self._use(metric)
        if metric["kind"] == "python":
            return self._call_function(metric, seconds)
        if metric["kind"] == "prometheus":
            return self._query(metric, seconds, ended)
        from trimtab_agent.metrics import extract, tools

        read = {"regex": extract.by_regex, "json": extract.by_json, "tool": tools.by_tool}[metric["kind"]]
        try:
            self.signals.interrupts = True
            signal.setitimer(signal.ITIMER_REAL, EXTRACTION_TIME)
            try:
                owner = self._owner()
                return read(extract.read_source(metric, self.streams, self.spec["work"], owner), metric)
            finally:
                self.signals.interrupts = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        except extract.NoValueError as error:
            raise _NoMetricError("infeasible", self._with_output(str(error))) from None
        except HaltedError:
            raise _NoMetricError("failed", f"not found within {EXTRACTION_TIME:g} s; simplify the pattern") from None

    def _use(self, metric: Spec) -> float:
        """Return what the latest run, or a server during it, has used."""
        kind, server = metric["kind"], metric.get("process")
        if server:
            assert self.servers is not None
            read = {
                "cpu_time": self.servers.seconds,
                "peak_memory": self.servers.peak_memory,
                "bytes_written": self.servers.bytes_written,
            }[kind]
            try:
                return round(read(server), 6)
            except servers.NoServerError as error:
                raise _NoMetricError("failed", str(error)) from None
        if kind == "cpu_time":
            return round(self.loads[-1].spent, 6)
        assert self.usage is not None
        return self.usage.peak_memory() if kind == "peak_memory" else self.usage.bytes_written()

    def _query(self, metric: Spec, seconds: float, ended: float) -> float:
        from trimtab_agent.metrics import extract, prometheus

        # A server that sends its answer byte by byte would keep to every time-out of a connection.
        most = metric["delay"] + metric["timeout"] + QUERY_MARGIN
        try:
            self.signals.interrupts = True
            signal.setitimer(signal.ITIMER_REAL, most)
            try:
                return prometheus.by_query(metric, self.spec["prometheus"], ended - seconds, ended)
            finally:
                self.signals.interrupts = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        except extract.NoValueError as error:
            raise _NoMetricError("infeasible", f"the query gives no number: {error}") from None
        except prometheus.QueryError as error:
            raise _NoMetricError("failed", str(error)) from None
        except HaltedError:
            raise _NoMetricError("failed", f"Prometheus has not answered completely within {most:g} s") from None

    def _owner(self) -> int | None:
        """Return the owner of the trial's files; None if the trial has this process's user."""
        user = self.spec.get("user")
        return None if user is None else int(user["uid"])

    def _call_function(self, metric: Spec, seconds: float) -> float:
        from trimtab_agent.metrics import extract

        request, answer = (os.path.join(self.folder, f"metric.{end}") for end in ("request", "answer"))
        if os.path.exists(answer):
            os.unlink(answer)
        asked = {"file": metric["file"], "function": metric["function"], "work": self.spec["work"]}
        with open(request, "w", encoding="utf-8") as file:
            json.dump({**asked, **self.streams, "seconds": seconds, "params": self.spec["params"]}, file)
        host = os.path.join(os.path.dirname(os.path.abspath(extract.__file__)), "function_host.py")
        argv = [self.spec["python"], "-I", host, request, answer]
        ended = self._step("metric", argv, self.spec["base_env"], self.spec["work"], seconds=metric["timeout"])
        reported = f"{os.path.basename(metric['file'])}:{metric['function']}"
        if ended.timed_out:
            raise _NoMetricError("failed", f"{reported} did not end within {metric['timeout']:g} s")
        try:
            with open(answer, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError):
            raise _NoMetricError(
                "failed", self._with_output(f"{reported} {ended.reported()} before it returned a value")
            ) from None
        if "error" in data:
            raise _NoMetricError("failed", f"{reported} raised {data['error']}")
        if data["value"] is None:
            raise _NoMetricError("infeasible", f"{reported} found no number")
        try:
            return extract.number(data["value"], metric)
        except extract.NoValueError as error:
            raise _NoMetricError("infeasible", f"{reported}: {error}") from None


def _looks(watches: Sequence[Watch], reported: "Streams | None") -> Watch:
    """Return what looks at a run: the watches and, if it reports measurements, their reader."""

    def look(ended: bool) -> float:
        pauses = [one(ended) for one in watches]
        if reported is not None:
            reported.look()
            pauses.append(STREAM_INTERVAL)
        return min(pauses)

    return look


class _NoMetricError(Exception):
    def __init__(self, outcome: str, reason: str) -> None:
        self.outcome = outcome
        super().__init__(reason)


def _shown(argv: Sequence[str]) -> str:
    return " ".join(item if item and not set(item) & set(" \t\n'\"\\$`*?;&|<>(){}[]") else repr(item) for item in argv)
