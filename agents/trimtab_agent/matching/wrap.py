"""`trimtab-agent wrap`: run a command with the proven settings of an application that it resembles.

It works without a scheduler, or within the jobs of any. Without an answer from the agent the command runs unchanged.
The imports are few, because a person waits for the command.
"""

import argparse
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from trimtab_agent.matching import client, protocol
from trimtab_components.terminal import write

DESCRIPTION = """\
Run a command with the proven settings of a tuned application that it resembles, if the agent on this
machine knows one and its policy allows it. The command's input, output, exit status and signals are its
own. Without an answer within half a second the command runs unchanged."""
EXAMPLES = """\
examples:
  trimtab-agent wrap -- ./solver --steps 100
  trimtab-agent wrap --name heat-4 --nodes 4 -- mpirun -n 16 ./solver input.dat
  TRIMTAB_MATCH=off trimtab-agent wrap -- ./solver     # without Trimtab

documentation: CONSOLE/docs/reference/commands.html#trimtab-agent-wrap
"""
OPT_OUT = "TRIMTAB_MATCH"
# Signals that are passed on to the command.
PASSED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
# The origin of a signal that a terminal sends, which the command receives as well.
FROM_KERNEL = 128
# Signals that Python ignores, and that commands expect not to be ignored.
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options before the command."""
    made = argparse.ArgumentParser(
        prog="trimtab-agent wrap",
        usage="%(prog)s [options] -- COMMAND [ARGUMENT ...]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--socket",
        default=os.environ.get("TRIMTAB_MATCH_SOCKET", protocol.DEFAULT_SOCKET),
        metavar="PATH",
        help="the agent's socket (default: TRIMTAB_MATCH_SOCKET or %(default)s)",
    )
    made.add_argument("--name", metavar="N", help="name of the job (default: the program's name)")
    made.add_argument("--nodes", type=int, default=1, metavar="N", help="number of nodes that the command uses")
    made.add_argument(
        "--timeout",
        type=float,
        default=protocol.CLIENT_TIME,
        metavar="S",
        help="seconds to wait for the agent (default: %(default)s)",
    )
    made.add_argument("--verbose", action="store_true", help="report on standard error what is applied, or why not")
    return made


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the command line after `wrap`; end with the exit status of the command."""
    words = list(arguments)
    split = words.index("--") if "--" in words else len(words)
    options, command = parser().parse_args(words[:split]), words[split + 1 :]
    if not command:
        parser().error("there is no command: write it after --")
    environment, submission = dict(os.environ), ""
    if environment.get(OPT_OUT) != "off":
        try:
            answer = client.talk(
                options.socket, protocol.ASK, _question(options, command, environment), options.timeout
            )
            environment, submission = _applied(environment, answer), dict(answer).get("submission", "")
            _say(options, dict(answer).get("note", "no tuned application resembles the command"))
        except client.NoAnswerError as error:
            _say(options, f"the command runs unchanged: {error}")
    if not submission:
        _become(command, environment)
    status, seconds = _run(command, environment)
    ended = [("submission", submission), ("status", str(status)), ("seconds", repr(seconds))]
    try:
        client.talk(options.socket, protocol.ENDED, ended, options.timeout)
    except client.NoAnswerError as error:
        _say(options, f"the run time is not reported: {error}")
    if status < 0:
        _die_of(-status)
    sys.exit(status)


def _question(options: argparse.Namespace, command: Sequence[str], environment: Mapping[str, str]) -> protocol.Pairs:
    program = os.path.basename(command[0])  # noqa: PTH119  pathlib takes 10 ms to import
    pairs = [
        ("kind", "wrap"),
        ("name", options.name or program),
        ("program", program),
        ("nodes", str(options.nodes)),
    ]
    pairs += [("arg", item) for item in command]
    return pairs + [("present", name) for name in environment]


def _applied(environment: Mapping[str, str], answer: protocol.Pairs) -> dict[str, str]:
    changed = dict(environment)
    for key, value in answer:
        if key == "set":
            name, _, text = value.partition("=")
            changed[name] = text
        elif key == "preload":
            own = changed.get("LD_PRELOAD")
            changed["LD_PRELOAD"] = f"{own}:{value}" if own else value
    return changed


def _become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    for number in RESTORED:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)  # nosec B606
    except OSError as error:
        _fail(command, error)


def _run(command: list[str], environment: Mapping[str, str]) -> tuple[int, float]:
    """Run the command; return its exit status, or a signal's number below zero, and its seconds."""
    watched = {*PASSED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    began = time.monotonic()
    try:
        child = os.posix_spawnp(command[0], command, environment, setsigmask=before, setsigdef=RESTORED)
    except OSError as error:
        _fail(command, error)
    while True:
        came = signal.sigwaitinfo(watched)
        if came.si_signo == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status), time.monotonic() - began
        elif came.si_code != FROM_KERNEL:
            os.kill(child, came.si_signo)


def _die_of(number: int) -> NoReturn:
    """End by the same signal as the command, which has written the core file if there is one."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    sys.exit(128 + number)


def _fail(command: Sequence[str], error: OSError) -> NoReturn:
    write(f"trimtab-agent: {command[0]}: {error.strerror}", error=True)
    sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _say(options: argparse.Namespace, text: str) -> None:
    if options.verbose:
        write(f"trimtab-agent: {text}", error=True)
