"""The command line: `trimtab-agent run`, `check`, `try`, `live`, `pull`, `workloads`, `prepare`, `completion` and
`wrap`."""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from trimtab_agent import completion, enrolment, live_command, needs, options_file, shipped
from trimtab_agent import config as configuration
from trimtab_agent.checking import Machine, describe, outline
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load_all
from trimtab_agent.credentials import Enrolled, TokenFile
from trimtab_agent.errors import AgentError, ComponentError, ConfigError
from trimtab_agent.logger import Logger
from trimtab_agent.matching import wrap
from trimtab_agent.policy import Policy
from trimtab_agent.policy import load as load_policy
from trimtab_agent.runners.base import Runner
from trimtab_agent.runners.trial_user import TrialUser
from trimtab_agent.version import VERSION
from trimtab_components.errors import NotInComponentError, UnsuitableValueError
from trimtab_components.schema import Component
from trimtab_components.terminal import reader_gone, visible, without_passwords, write

logger = Logger(__name__)

EXAMPLES = """\
examples:
  trimtab-agent check agents/workloads/gcc-flags
  trimtab-agent try gcc-flags --components agents/workloads --set inline-limit=200
  trimtab-agent run --server 127.0.0.1:8471 --token-file data/admin-token --components agents/workloads/gcc-flags
  trimtab-agent pull sorter --server tune.example.org:443 --components /etc/trimtab/components
  trimtab-agent wrap -- ./solver --steps 100

documentation, below the address of the console, such as http://127.0.0.1:8470:
  CONSOLE/docs/reference/commands.html#trimtab-agent-run
"""
PAGE = "CONSOLE/docs/reference/commands.html"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="trimtab-agent",
        description="Runs Trimtab's trials on this machine, and applies proven settings to other people's jobs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    state = argparse.ArgumentParser(add_help=False)
    state.add_argument(
        options_file.OPTION,
        type=Path,
        metavar="F",
        help=f"file with options, such as trimtab-agent.toml (default: the variable {options_file.VARIABLE}, or "
        f"{options_file.SYSTEM} if it exists)",
    )
    state.add_argument(
        "--state-dir",
        type=Path,
        default=configuration.default_state(),
        metavar="D",
        help="directory of the journal, the build cache and the agent's identity (default: %(default)s)",
    )
    state.add_argument(
        "--build-cache-mib",
        type=_positive,
        default=2048,
        metavar="N",
        help="size of the build cache (default: %(default)s MiB)",
    )

    where = argparse.ArgumentParser(add_help=False)
    where.add_argument(
        "--runner",
        choices=configuration.RUNNERS,
        default="local",
        help="where trials run. local: on this machine; slurm: as batch jobs; ray: as jobs of a Ray cluster; psij: as "
        "jobs of PBS, LSF or Flux through PSI/J. All but local need --state-dir on a file system that the nodes share "
        "(default: %(default)s)",
    )
    where.add_argument(
        "--slurm-option",
        action="append",
        default=[],
        metavar="--NAME=VALUE",
        help="option of sbatch for every job, such as --slurm-option=--partition=short or --slurm-option=--exclusive; "
        "a trial's own options override it; can be repeated",
    )
    where.add_argument(
        "--ray-address",
        metavar="URL",
        help="the dashboard of Ray's head; ray://HOST:10001 and HOST:6379 mean port 8265 of that host (default: "
        "RAY_API_SERVER_ADDRESS, RAY_ADDRESS or http://127.0.0.1:8265). The agent sends the token in RAY_AUTH_TOKEN, "
        "RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token if there is one, unless RAY_AUTH_MODE is disabled",
    )
    where.add_argument(
        "--ray-option",
        action="append",
        default=[],
        metavar="--NAME=VALUE",
        help="resources of every job, such as --ray-option=--num-cpus=4 or --ray-option='--resources={\"bench\": 1}'; "
        "also --num-gpus, --memory and --label-selector; a trial's own options override it; can be repeated",
    )
    where.add_argument(
        "--psij-executor",
        metavar="NAME",
        help="the scheduler of --runner psij: pbs, pbs_classic, lsf, flux or slurm; local runs processes on this "
        "machine",
    )
    where.add_argument(
        "--psij-option",
        action="append",
        default=[],
        metavar="--NAME=VALUE",
        help="what every job asks for, such as --psij-option=--queue=short, --psij-option=--cpus=4 or an option of the "
        "scheduler's own, --psij-option=--pbs.l=place=excl; a trial's own options override it; can be repeated",
    )
    where.add_argument(
        "--trial-cores",
        type=_natural,
        metavar="N",
        help="number of cores that each trial has for itself, with the local runner. A core's hyper-threads belong "
        "to it, and the agent avoids these cores. 0: trials may use all cores (default: the slots share the cores)",
    )
    where.add_argument(
        "--trial-memory-mib",
        type=_positive,
        metavar="N",
        help="memory limit of a trial, with the local runner and if control groups can be used; a trial that needs "
        "more is infeasible (default: no limit)",
    )

    where.add_argument(
        "--prometheus-url",
        metavar="URL",
        help="address of the Prometheus server for metrics of the type prometheus that name none, such as "
        "http://127.0.0.1:9090; the nodes of the trials must reach it (default: none)",
    )
    where.add_argument(
        "--prometheus-token-file",
        type=Path,
        metavar="F",
        help="file with a bearer token for --prometheus-url, which the user of the trials' supervisors can read",
    )

    connection = argparse.ArgumentParser(add_help=False)
    connection.add_argument("--server", required=True, metavar="HOST:PORT", help="the service's gRPC address")
    connection.add_argument(
        "--token-file", type=Path, metavar="F", help="file with a token, for an agent that does not enrol"
    )
    connection.add_argument(
        "--tls", action="store_true", help="encrypt the connection even if the service is on this machine"
    )
    connection.add_argument(
        "--plaintext", action="store_true", help="do not encrypt the connection, even to another machine"
    )
    connection.add_argument(
        "--tls-ca",
        type=Path,
        metavar="F",
        help="PEM file of certificates to trust (default: gRPC's own list); implies --tls",
    )
    connection.add_argument(
        "--tls-cert", type=Path, metavar="F", help="the agent's certificate, if the service requires one"
    )
    connection.add_argument("--tls-key", type=Path, metavar="F", help="the key of --tls-cert")

    run = commands.add_parser(
        "run",
        parents=[state, where, connection],
        help="run trials for a service until SIGTERM or SIGINT",
        epilog="examples:\n  TRIMTAB_ENROL_TOKEN=tre_... trimtab-agent run --server tune.example.org:443 \\\n"
        "      --components /etc/trimtab/components --slots 1 --label partition=short\n"
        "  trimtab-agent run --server tune.example.org:443 --token-file ~/token --components ~/components \\\n"
        "      --state-dir /shared/$USER/trimtab --runner slurm --slots 8 --slurm-option=--exclusive\n"
        "  trimtab-agent run --server tune.example.org:443 --token-file ~/token --components ~/components \\\n"
        "      --state-dir /shared/$USER/trimtab --runner ray --ray-address http://ray-head:8265 --slots 8\n"
        "  trimtab-agent run --server tune.example.org:443 --components /etc/trimtab/components \\\n"
        "      --policy /etc/trimtab/policy.yaml --match-socket /run/trimtab/match.sock --slots 0",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument(
        "--enrol-file",
        type=Path,
        metavar="F",
        help="file with a token for one enrolment, from `trimtab agent enrol`; the environment variable "
        f"{enrolment.VARIABLE} may have it instead. The agent then has its own credential in --state-dir and renews "
        "it. Later starts need no token, no file, and ignore a used token",
    )
    run.add_argument(
        "--enrol",
        metavar="TOKEN",
        help="the token itself (-: read it from standard input). All users of the machine see a token in the "
        "arguments for a moment, so prefer the other ways",
    )
    run.add_argument(
        "--components", required=True, type=Path, metavar="DIR", help="folder with files NAME/component.yaml or *.yaml"
    )
    run.add_argument(
        "--slots",
        type=_natural,
        default=1,
        metavar="N",
        help="number of trials at the same time; with Slurm or Ray the number of jobs, pending ones included; 0: run "
        "no trials and only match jobs, for a login node (default: 1, so that trials do not disturb each other's "
        "timing)",
    )
    run.add_argument(
        "--name", default=configuration.default_name(), help="name of the agent, shown to users (default: %(default)s)"
    )
    run.add_argument(
        "--label", action="append", default=[], metavar="KEY=VALUE", help="label shown to users; can be repeated"
    )
    run.add_argument(
        "--trial-user",
        metavar="USER",
        help="user of the trials, with the local runner and an agent that runs as root. It can read nothing of "
        "--state-dir, such as the agent's credential (default: the policy's trial_user, or the agent's own user)",
    )
    run.add_argument(
        "--policy",
        type=Path,
        metavar="F",
        help="file with the administrator's rules (default: everything installed may run)",
    )
    run.add_argument(
        "--match-socket",
        type=Path,
        metavar="PATH",
        help="socket on which submission hosts ask for the proven settings of applications that their jobs resemble, "
        "such as /run/trimtab/match.sock, in a folder that only the agent may write. The policy's key `matching` says "
        "for which jobs; without it nothing is changed and the log says what would have been done (default: no socket)",
    )

    check = commands.add_parser(
        "check",
        parents=[state],
        help="validate component files and print their spaces",
        description="Validate component files, print their spaces, and report whether this machine suits timings.\n"
        "The exit code is 2 if a file has errors, or if the policy refuses every job of an application.",
        epilog="examples:\n  trimtab-agent check /etc/trimtab/components\n"
        "  trimtab-agent check agents/workloads/gcc-flags/component.yaml",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument(
        "--policy", type=Path, metavar="F", help="also check that the rules of this file allow each component's jobs"
    )
    check.add_argument("--json", action="store_true", help="print one JSON object with the components")
    check.add_argument(
        "components", type=Path, metavar="DIR", help="folder with files NAME/component.yaml or *.yaml, or one file"
    )

    attempt = commands.add_parser(
        "try",
        parents=[state, where],
        help="run one trial without a service and print its metrics",
        description="Run one trial without a service and print its metrics. The exit code is 1 if the trial failed.",
        epilog="examples:\n  trimtab-agent try redis --set maxmemory-policy=allkeys-lfu --application cache\n"
        "  trimtab-agent try gcc-flags --components agents/workloads --set inline-limit=200\n"
        "  trimtab-agent try gcc-flags --components agents/workloads --dry-run\n"
        "  trimtab-agent try ./component.yaml --runner slurm --state-dir /shared/$USER/trimtab",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    attempt.add_argument("component", metavar="COMPONENT", help="name of the component, or its file")
    attempt.add_argument(
        "--components",
        type=Path,
        metavar="DIR",
        help="folder to search (default: the current folder, then the components that ship with the agent)",
    )
    attempt.add_argument("--application", metavar="A", help="application to run (default: the first in the file)")
    attempt.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of a parameter (default: its default value); can be repeated",
    )
    attempt.add_argument(
        "--dry-run",
        action="store_true",
        help="print the commands, environment, rendered files and scheduler options of the trial without running it",
    )
    attempt.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="leave the work folder, the outputs and the log of the trial in this new folder",
    )
    attempt.add_argument(
        "--json",
        action="store_true",
        help="print only the result, as one JSON object with outcome, reason, metrics, elapsed, node, doubt and "
        "interference",
    )
    attempt.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="required metric: without it the trial is infeasible; can be repeated (default: any one metric)",
    )

    pull = commands.add_parser(
        "pull",
        parents=[state, connection],
        help="install a component that was written in the service",
        description="Show a component's file that was written in the service, or its difference from the installed\n"
        "file, ask for confirmation, and write it into the agent's components folder. A running agent\n"
        "offers it within seconds. The command authenticates with the agent's own credential, or with\n"
        "--token-file.",
        epilog="example:\n  trimtab-agent pull sorter --server tune.example.org:443 --components "
        "/etc/trimtab/components",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    pull.add_argument("name", metavar="NAME", help="name of the component")
    pull.add_argument("--components", required=True, type=Path, metavar="DIR", help="components folder of the agent")
    pull.add_argument(
        "--digest",
        type=_digest,
        metavar="SHA256",
        help="accept only the version with this digest, as the console shows it (default: newest)",
    )
    pull.add_argument("--yes", action="store_true", help="install without confirmation")

    listed = commands.add_parser(
        "workloads",
        help="list the components that ship with the agent, with their folders and packages",
        description="List the components that ship with the agent, with their folders and their packages,\n"
        "or print the folder of one. For the name bench.py: the path of the module that scripts of components share.",
        epilog="examples:\n  trimtab-agent workloads\n"
        '  cp -r "$(trimtab-agent workloads gcc-flags)" /etc/trimtab/components/',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    listed.add_argument("name", nargs="?", metavar="NAME", help="print only the folder of this one")
    listed.add_argument("--json", action="store_true", help="print one JSON object with the folders and packages")

    ready = commands.add_parser(
        "prepare",
        help="say what must be installed for a component that ships with the agent",
        description="Say which programs and packages a component that ships with the agent needs, which of them are\n"
        "missing, and how to install them. Installs nothing. The exit code is 1 if something is missing.",
        epilog="examples:\n  trimtab-agent prepare nginx-proxy && trimtab-agent try nginx-proxy",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ready.add_argument("name", metavar="NAME", help="name of the component")
    ready.add_argument("--json", action="store_true", help="print what is needed and what to do as one JSON object")

    completed = commands.add_parser(
        "completion",
        help="print a script with which a shell completes this command",
        description="Print a script with which a shell completes commands, options and their words.",
        epilog='examples:\n  eval "$(trimtab-agent completion bash)"\n'
        "  trimtab-agent completion fish > ~/.config/fish/completions/trimtab-agent.fish",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completed.add_argument("shell", choices=completion.SHELLS, metavar="SHELL", help="bash, zsh or fish")

    live_command.add_parser(commands, state)
    # main gives the words after it to the module, which reads them itself.
    commands.add_parser("wrap", help="run a command with the proven settings of an application that it resembles")
    for name, command in commands.choices.items():
        command.epilog = f"{command.epilog or ''}\n\ndocumentation: {PAGE}#trimtab-agent-{name}".lstrip()
    return top


class Line(logging.Formatter):
    """A line of the log, and a traceback if there is one, without passwords and without control of the terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the whole record."""
        return without_passwords(visible(super().format(record)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Exit with 1 if the command fails, and with 2 for wrong arguments or component files."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["wrap"]:
        wrap.main(given[1:])
    try:
        options = _options(given)
    except ConfigError as error:
        if "--json" in given:
            write(json.dumps({"error": {"code": error.code, "message": str(error), "problems": []}}))
        write(f"trimtab-agent: {error}", error=True)
        sys.exit(2)
    except BrokenPipeError:
        reader_gone()
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(Line())
    logging.basicConfig(level=logging.INFO, handlers=[lines])
    try:
        if arguments is None and options.command == "run" and options.enrol not in (None, "-"):
            logger.warning(
                "all users of this machine could see the token of --enrol, use --enrol-file or the variable",
                variable=enrolment.VARIABLE,
            )
            enrolment.hide(options.enrol)
        COMMANDS[options.command](options)
    except BrokenPipeError:
        reader_gone()
    except ComponentError as error:
        _as_json(options, error)
        write(error, error=True)
        count = len(error.problems)
        write(f"{count} error{'s' if count > 1 else ''} in component files; nothing was started", error=True)
        sys.exit(2)
    except ConfigError as error:
        _as_json(options, error)
        write(f"trimtab-agent: {error}", error=True)
        sys.exit(2)
    except (AgentError, NotInComponentError, UnsuitableValueError) as error:
        _as_json(options, error)
        write(f"trimtab-agent: {error}", error=True)
        sys.exit(1)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line and of the file of options. Raises ConfigError."""
    top = parser()
    file = options_file.find(arguments)
    commands = _commands(top)
    name = next((one for one in arguments if one in commands), "")
    if file is not None and name:
        options_file.apply(file, commands[name], list(commands.values()))
    return top.parse_args(arguments)


def _commands(top: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    [found] = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    return found.choices


def _completion(options: argparse.Namespace) -> None:
    write(completion.script(options.shell, _commands(parser())), end="")


def _as_json(options: argparse.Namespace, error: AgentError | NotInComponentError | UnsuitableValueError) -> None:
    """Print an error for programs, if the command was given --json."""
    if getattr(options, "json", False):
        problems = [asdict(one) for one in error.problems] if isinstance(error, ComponentError) else []
        write(json.dumps({"error": {"code": error.code, "message": str(error), "problems": problems}}))


def _run(options: argparse.Namespace) -> None:
    # Before anything else: an earlier process may have left settings of a trial in force.
    records = options.state_dir.absolute() / configuration.LIVE_RECORDS
    live_command.recover(records)
    live_command.retry_stuck(records)
    policy = (load_policy(options.policy) if options.policy else Policy()).under(options.runner)
    settings = configuration.Config(
        server=configuration.parse_server(options.server),
        token_file=options.token_file,
        enrol=enrolment.find(options.enrol, options.enrol_file),
        state=options.state_dir.absolute(),
        name=options.name,
        slots=min(options.slots, policy.trials or options.slots),
        labels=configuration.parse_labels(options.label),
        cache_limit=options.build_cache_mib << 20,
        tls=_tls(options),
        policy=policy,
        scheduler_options=tuple(_scheduler_options(options).get(options.runner, ())),
        match_socket=options.match_socket.absolute() if options.match_socket else None,
        prometheus=_prometheus(options),
    )
    if settings.token_file and settings.enrol:
        raise ConfigError(
            f"--token-file and a token for an enrolment (--enrol, --enrol-file or {enrolment.VARIABLE}) are both given;"
            " give one of them"
        )
    if settings.slots == 0 and settings.match_socket is None:
        raise ConfigError("--slots 0 runs no trials, so it needs --match-socket. Give one, or use 1 or more slots")
    if settings.token_file:
        TokenFile(settings.token_file).token()
    machine = Machine()
    user = _trial_user(options.trial_user, policy)
    runner = _runner(options, max(1, settings.slots), user)
    from trimtab_agent.installed import Installed

    components = Installed(*_source(options.components, options.state_dir), may_be_empty=bool(policy.install))
    # These modules import gRPC, which check and try do not need.
    from trimtab_agent.agent import serve
    from trimtab_agent.journal import Journal
    from trimtab_agent.runners.live import LiveRunner
    from trimtab_agent.tracing import start as start_tracing

    start_tracing()
    journal = Journal(settings.state)
    if user is not None:
        user.open_state(settings.state, {one.folder for one in components.components.values()})
    for remark in machine.remarks():
        logger.warning("timings on this machine may be unreliable", reason=remark)
    try:
        credentials = TokenFile(settings.token_file) if settings.token_file else Enrolled(settings.state)
        if settings.enrol is None:
            credentials.token()
        asyncio.run(serve(settings, components, journal, LiveRunner(runner), credentials))
    finally:
        journal.close()


def _trial_user(given: str | None, policy: Policy) -> TrialUser | None:
    if given and policy.trial_user and given != policy.trial_user:
        raise ConfigError(f"--trial-user {given} contradicts the policy's trial_user {policy.trial_user}")
    name = given or policy.trial_user
    return TrialUser.find(name) if name else None


def _check(options: argparse.Namespace) -> None:
    machine = Machine()
    policy = load_policy(options.policy) if options.policy else Policy()
    # A file with rules for both schedulers is checked for Slurm.
    policy = policy.under("ray" if policy.ray and not policy.slurm else "slurm")
    components = _load(options.components, options.state_dir)
    refusals = list(policy.refusals(components))
    if options.json:
        write(json.dumps({"components": [outline(one, refusals) for one in components.values()]}))
    else:
        for component in components.values():
            write(describe(component), end="\n\n")
        for name, application, refusal in refusals:
            write(f"refused by the policy: component {name}, application {application}: {refusal}")
        write(machine.describe())
    if refusals:
        sys.exit(2)


def _try(options: argparse.Namespace) -> None:
    from trimtab_agent.trying import try_once

    timed = options.runner == "local" and not options.json and not options.dry_run
    machine = Machine() if timed else None
    given = Path(options.component)
    folder = options.components or Path()
    # Load only the component's own folder if it exists, so that errors of its neighbours do not matter.
    own = folder / options.component / "component.yaml"
    location = given if given.is_file() else own if own.is_file() else folder
    if location == folder and options.components is None and options.component in shipped.workloads():
        location = shipped.workload(options.component)
        _expect_needs(options.component, location)
        location /= "component.yaml"
    components = _load(location, options.state_dir)
    component = next(iter(components.values())) if given.is_file() else components.get(options.component)
    if component is None:
        raise ConfigError(f"{folder} has no component {options.component!r}; it has {', '.join(components)}")
    application = options.application or next(iter(component.applications))
    runner = _runner(options, 1)
    if machine is not None:
        write(machine.describe())
    state = options.state_dir.absolute()
    limit = options.build_cache_mib << 20
    if options.json and options.dry_run:
        raise ConfigError("--json contradicts --dry-run, which has no result; give one of them")
    done = try_once(
        component,
        application,
        options.set,
        options.metric,
        state,
        limit,
        runner,
        _prometheus(options),
        dry=options.dry_run,
        as_json=options.json,
        keep=options.keep,
    )
    sys.exit(0 if done else 1)


def _pull(options: argparse.Namespace) -> None:
    from trimtab_agent import pulling

    state = options.state_dir.absolute()
    server = configuration.parse_server(options.server)
    settings = configuration.Config(server=server, state=state, name=options.name, tls=_tls(options))
    credentials = TokenFile(options.token_file) if options.token_file else Enrolled(state)
    credentials.token()
    written = asyncio.run(pulling.fetch(settings, credentials, options.name, options.digest or ""))
    consent = (lambda: True) if options.yes else pulling.ask
    component = pulling.install(written, options.components, Generator(state / "generated"), consent)
    if component is None:
        write("Nothing was installed.")
        sys.exit(1)
    write(describe(component))


def _live(options: argparse.Namespace) -> None:
    records = options.state_dir.absolute() / configuration.LIVE_RECORDS
    if options.action == "status":
        sys.exit(live_command.status(records, options.instance, as_json=options.json))
    if options.action != "calibrate":
        sys.exit(live_command.ACTIONS[options.action](records, options.instance))
    component = next(iter(_load(options.component, options.state_dir).values()))
    prometheus = configuration.Prometheus.of(options.prometheus_url, None)
    sys.exit(live_command.calibrate(component, options.instance, options.seconds, prometheus, options.json))


def _workloads(options: argparse.Namespace) -> None:
    found = {options.name: shipped.workload(options.name)} if options.name else shipped.workloads()
    if options.json:
        shown = {
            name: {"folder": str(folder), "needs": [asdict(one) for one in shipped.needs(folder)]}
            for name, folder in found.items()
            if name != shipped.BENCH
        }
        write(json.dumps({"workloads": shown}))
        return
    if options.name:
        write(found[options.name])
        return
    for name, folder in shipped.workloads().items():
        write(f"{name:24} {folder}\n{'':24} needs: {needs.packages(shipped.needs(folder)) or 'nothing more'}")


def _prepare(options: argparse.Namespace) -> None:
    folder = shipped.workload(options.name)
    if options.json:
        found = needs.to_json(options.name, folder, shipped.needs(folder))
        write(json.dumps(found))
        complete = not found["missing"]
    else:
        complete = needs.report(options.name, folder, shipped.needs(folder))
    if not complete:
        sys.exit(1)


def _expect_needs(name: str, folder: Path) -> None:
    """Raise ConfigError that says what to install, if a component that ships needs something that is not there."""
    if absent := needs.missing(shipped.needs(folder)):
        lacking = ", ".join(f"{one.kind} {one.name}" for one in absent)
        raise ConfigError(f"{name} needs: {lacking}. Install with: {'; '.join(needs.commands(absent))}")


def _tls(options: argparse.Namespace) -> configuration.Tls | None:
    return configuration.choose_tls(
        options.server, options.tls, options.plaintext, options.tls_ca, options.tls_cert, options.tls_key
    )


def _load(location: Path, state: Path) -> dict[str, Component]:
    return load_all(*_source(location, state))


def _source(location: Path, state: Path) -> tuple[Path, Generator]:
    if not location.exists():
        raise ConfigError(f"--components {location} does not exist: give a component file, or a folder of them")
    return location, Generator(state.absolute() / "generated")


def _runner(options: argparse.Namespace, slots: int, user: TrialUser | None = None) -> Runner:
    memory = (options.trial_memory_mib or 0) << 20
    return configuration.make_runner(
        options.runner,
        _scheduler_options(options),
        ray_address=options.ray_address,
        psij_executor=options.psij_executor,
        shared=options.state_dir.absolute() / "psij",
        slots=slots,
        cores=options.trial_cores,
        memory=memory,
        user=user,
    )


def _prometheus(options: argparse.Namespace) -> configuration.Prometheus:
    return configuration.Prometheus.of(options.prometheus_url, options.prometheus_token_file)


def _scheduler_options(options: argparse.Namespace) -> dict[str, list[str]]:
    return {"slurm": options.slurm_option, "ray": options.ray_option, "psij": options.psij_option}


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below the minimum 0")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below the minimum 1")
    return number


def _digest(text: str) -> str:
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise argparse.ArgumentTypeError(f"{text!r} has not 64 hexadecimal digits")
    return text


COMMANDS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "run": _run,
    "check": _check,
    "try": _try,
    "pull": _pull,
    "workloads": _workloads,
    "prepare": _prepare,
    "live": _live,
    "completion": _completion,
}

if __name__ == "__main__":
    main()
