"""The command `trimtab-service`: it runs the whole service on one machine (`up`), or one of its processes."""

import json
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from service.backups import DataDir, backup, data_folder, restore
from service.command_errors import CommandError
from service.doctor.command import doctor
from service.keycloak.command import app as keycloak
from service.logger import Logger
from service.operating import app as tenants
from service.replay.cli import replay
from trimtab_components.terminal import reader_gone, write

if TYPE_CHECKING:
    from service.embedded.forked import ForkedChild

logger = Logger(__name__)

# Slow suggestions and insights give way to the quick ones on a busy machine.
SLOW_NICENESS = 5
# The parts of a worker, for quick and for slow operations: what its name in the list of workers ends with.
PARTS = ("", "slow")


class Commands(TyperGroup):
    """The commands, whose errors are JSON for programs that ask for it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        as_json = "--json" in (*ctx._protected_args, *ctx.args)
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            reader_gone()
        except CommandError as error:
            if as_json:
                write(json.dumps({"error": {"code": error.code, "message": error.message, "data": {}}}))
            write(f"trimtab-service: {error.message}", error=True)
            raise typer.Exit(error.status) from None
        except Exception as error:
            # Typer has a copy of Click's errors for wrong usage, which is no part of its interface.
            words = getattr(error, "format_message", None)
            if as_json and words is not None:
                write(json.dumps({"error": {"code": "invalid_usage", "message": words(), "data": {}}}))
            raise


app = typer.Typer(
    name="trimtab-service",
    cls=Commands,
    help="Run the Trimtab tuning service.",
    epilog="On one machine: `trimtab-service up`. On many: `migrate` once, then any number of `web`, `grpc`, `worker` "
    "and `beat`. The environment configures each process: DATABASE_URL, CELERY_BROKER_URL, TRIMTAB_SECRET_KEY and "
    "TRIMTAB_OIDC_ISSUER or TRIMTAB_ADMIN_TOKEN. "
    "Documentation: CONSOLE/docs/reference/commands.html, where CONSOLE is the address of the console, such as "
    "http://127.0.0.1:8470.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        write(f"trimtab-service {metadata.version('trimtab-service')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Define the options before any command. The help text is the app's."""


# How long `migrate` waits for a database that is away for a moment.
MIGRATE_PATIENCE_SECONDS = 30.0

Host = Annotated[
    str, typer.Option(help="Address to listen on. An address that is not loopback needs TLS or --plaintext.")
]
TlsFile = Annotated[Path | None, typer.Option(help="PEM file. It is read again when it changes.")]
Plaintext = Annotated[
    bool,
    typer.Option("--plaintext", help="Do not encrypt on addresses that other machines reach, because a proxy does."),
]
Metrics = Annotated[
    str | None, typer.Option(help="HOST:PORT of an endpoint for Prometheus, such as 127.0.0.1:9470. Default: none.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 selects a free one.")]
GrpcPort = Annotated[int, typer.Option(min=0, max=65535, help="Port of gRPC; 0 selects a free one.")]


def _set_up_django() -> None:
    """Set up Django with hosted settings unless the environment names others. A missing setting ends the command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "service.config.settings.hosted")
    import django
    from django.core.exceptions import ImproperlyConfigured

    try:
        django.setup()
    except ImproperlyConfigured as error:
        write(f"trimtab-service: {error}", error=True)
        raise typer.Exit(2) from None


@app.command()
def up(
    data_dir: DataDir = None,
    host: Host = "127.0.0.1",
    port: Port = 8470,
    grpc_port: GrpcPort = 8471,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that compute suggestions.")] = 1,
    plaintext: Plaintext = False,
) -> None:
    """Run the whole service on this machine until Ctrl-C: PostgreSQL, web, gRPC, worker and periodic tasks.

    It needs no other installation and no configuration. The administrator's token is in DATA_DIR/admin-token, the logs
    are in DATA_DIR/logs. The line `ready console=... grpc=...` says that everything answers.

    Examples:

      trimtab-service up

      trimtab-service up --data-dir ./data --port 0 --grpc-port 0
    """
    from service.embedded.supervisor import Options, StartError, Supervisor

    try:
        Supervisor(Options(data_folder(data_dir), host, port, grpc_port, workers, plaintext)).run()
    except StartError as error:
        write(f"trimtab-service: {error}", error=True)
        raise typer.Exit(1) from None


@app.command()
def login_link(
    data_dir: DataDir = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Print a new login link, valid once, to the console of the service that `up` runs.

    Example:

      trimtab-service login-link --data-dir ./data
    """
    folder = data_folder(data_dir).expanduser().resolve()
    from service.embedded.running import NotRunning, enter

    try:
        service = enter(folder)
    except NotRunning as error:
        raise CommandError(str(error), "not_running") from None
    _set_up_django()
    from service.embedded.announce import login_link as new_link

    link = new_link(service["console"])
    write(json.dumps({"link": link}) if as_json else link)


@app.command()
def migrate() -> None:
    """Bring the database tables up to date. Run it before the other processes of a new version start.

    The tables belong to the role in TRIMTAB_OWNER_DATABASE_URL. The other processes connect with the role in
    DATABASE_URL, which sees the rows of one tenant at a time. This command creates that role if it does not exist and
    the owner may create roles.

    Example:

      TRIMTAB_OWNER_DATABASE_URL=postgresql://trimtab_owner:secret@db:5432/trimtab
      DATABASE_URL=postgresql://trimtab_service:other@db:5432/trimtab ... trimtab-service migrate
    """
    _become_owner()
    _set_up_django()
    from django.core.management import call_command
    from django.db import InterfaceError, OperationalError, connections

    from service.platform.retries import retry_until
    from service.tenancy import protection

    def bring_up_to_date() -> None:
        protection.ensure_role(os.environ["TRIMTAB_SERVICE_ROLE"], os.environ.get("TRIMTAB_SERVICE_PASSWORD"))
        call_command("migrate", interactive=False, skip_checks=True, verbosity=1)

    try:
        # Each migration is one transaction, so one that was interrupted is done again as a whole.
        end = time.monotonic() + MIGRATE_PATIENCE_SECONDS
        retry_until(bring_up_to_date, (OperationalError, InterfaceError), end, connections.close_all)
    except protection.CannotMakeRole as error:
        write(f"trimtab-service: {error}", error=True)
        raise typer.Exit(2) from None


def _become_owner() -> None:
    """Make this process connect as the owner of the tables, which grants privileges to the service's role."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    owner, service = os.environ.get("TRIMTAB_OWNER_DATABASE_URL"), os.environ.get("DATABASE_URL")
    if not owner or not service:
        write(
            "trimtab-service: both TRIMTAB_OWNER_DATABASE_URL, with the role that owns the tables, and DATABASE_URL,"
            " with the role that the service connects with, must be set.",
            error=True,
        )
        raise typer.Exit(2)
    try:
        role, owning = conninfo_to_dict(service), conninfo_to_dict(owner)
    except ProgrammingError:
        # The library's own message quotes the address with its password.
        write(
            "trimtab-service: TRIMTAB_OWNER_DATABASE_URL or DATABASE_URL is not the address of a database. Use"
            " postgresql://USER:PASSWORD@HOST:PORT/NAME, with special characters as %XX.",
            error=True,
        )
        raise typer.Exit(2) from None
    if not role.get("user") or role["user"] == owning.get("user"):
        write(
            "trimtab-service: DATABASE_URL must name another role than TRIMTAB_OWNER_DATABASE_URL, because row-level"
            " security does not restrict the owner of a table.",
            error=True,
        )
        raise typer.Exit(2)
    os.environ["DATABASE_URL"] = owner
    os.environ["TRIMTAB_SERVICE_ROLE"] = str(role["user"])
    if role.get("password"):
        os.environ["TRIMTAB_SERVICE_PASSWORD"] = str(role["password"])


def _set_up_service(process: str) -> None:
    """Set up Django and traces. Refuse to serve if the database would show the rows of one tenant to another."""
    _set_up_django()
    _trace(process)
    _expect_protection()


def _trace(process: str) -> None:
    from django.conf import settings

    from service.core.errors import kind_of
    from service.platform import tracing

    tracing.start(process, settings.TRIMTAB_TRACES_PER_SECOND, kind_of)


def _expect_protection() -> None:
    """Refuse to serve if the database would show the rows of one tenant to another. Wait until it answers."""
    from django.db import OperationalError, connections

    from service.tenancy import protection

    while True:
        try:
            faults = protection.faults()
            break
        except OperationalError as error:
            logger.warning("waiting for the database", error=error)
            time.sleep(1)
    connections.close_all()
    if faults:
        write("trimtab-service: the service refuses to start:\n  " + "\n  ".join(faults), error=True)
        raise typer.Exit(2)


def _share_the_interpreter() -> None:
    """Let the threads of this process take turns more often than the 5 ms of Python.

    A short request needs dozens of turns. Next to six threads that compute, each would come after 30 ms.
    """
    sys.setswitchinterval(0.0005)


@app.command()
def web(host: Host = "127.0.0.1", port: Annotated[int, typer.Option(min=1, max=65535)] = 8470) -> None:
    """Serve REST, server-sent events and the console.

    Example:

      trimtab-service web --host 0.0.0.0 --port 8470
    """
    # Django uses a new thread for each request, so the threads share connections.
    os.environ.setdefault("TRIMTAB_DATABASE_POOL", "8")
    _set_up_service("web")
    _share_the_interpreter()
    from service.config import serving

    server = serving.server(host, port)
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        raise typer.Exit(3)


@app.command()
def grpc(
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8471,
    tls_cert: TlsFile = None,
    tls_key: TlsFile = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(help="PEM file of authorities. Only clients with a certificate from one of them are served."),
    ] = None,
    plaintext: Plaintext = False,
    metrics: Metrics = None,
    processes: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that share the port. Each uses one core at most.")
    ] = 1,
    shared_port: Annotated[bool, typer.Option("--shared-port", hidden=True)] = False,
) -> None:
    """Serve gRPC to the SDK, the command line and the agents.

    Connections from other machines are encrypted. Replaced certificates take effect without a restart. With
    --processes 4 and --metrics HOST:9470, the processes have the metrics ports 9470 to 9473.

    Examples:

      trimtab-service grpc --host 0.0.0.0 --tls-cert /etc/trimtab/tls.crt --tls-key /etc/trimtab/tls.key

      trimtab-service grpc --host 10.0.0.5 --plaintext     (behind a proxy that encrypts)

      trimtab-service grpc --processes 4
    """
    if processes > 1:
        from service.embedded import shared_port as sharing

        _check_metrics(metrics, processes)
        sharing.run([_one_of(number, metrics) for number in range(processes)], host, port)
        return
    _set_up_service("grpc")
    _share_the_interpreter()
    from service.config import liveness
    from service.rpc.server import run
    from service.rpc.tls import TlsError, chosen

    try:
        files = chosen(host, tls_cert, tls_key, tls_client_ca, plaintext=plaintext)
    except TlsError as error:
        write(f"trimtab-service: {error}", error=True)
        raise typer.Exit(2) from None
    _serve_metrics(metrics)
    run(host, port, files, shared=shared_port, alive=liveness.keep_touching)


def _one_of(number: int, metrics: str | None) -> list[str]:
    """Return the command of this number, from 0, of the processes that share a port. Later options replace earlier."""
    from service.embedded.processes import service_command

    command = service_command(*sys.argv[1:], "--processes", "1", "--shared-port")
    if metrics is not None:
        command += ["--metrics", _metrics_of(number, metrics)]
    return command


def _metrics_of(number: int, metrics: str) -> str:
    """Return the address of the metrics of a process by its number, from 0. `metrics` is that of the first."""
    host, _, port = metrics.rpartition(":")
    return f"{host}:{int(port) + number}" if host and port.isdecimal() else metrics


def _check_metrics(address: str | None, processes: int) -> None:
    """Expect the addresses of so many processes to be free: a process that cannot have its own is started for ever."""
    from service.config import monitoring

    if address is not None:
        for number in range(processes):
            _at_address(monitoring.check, _metrics_of(number, address))


def _serve_metrics(address: str | None) -> None:
    from service.config import monitoring

    if address is not None:
        _at_address(monitoring.serve, address)


def _at_address(act: Callable[[str], None], address: str) -> None:
    from service.config import monitoring

    try:
        act(address)
    except monitoring.BadAddress as error:
        write(f"trimtab-service: {error}", error=True)
        raise typer.Exit(2) from None


@app.command()
def worker(metrics: Metrics = None) -> None:
    """Compute costly suggestions, one at a time. Start as many workers as there are free cores.

    A worker has two processes. The second computes insights, and suggestions that need more than 3 s of CPU, so that
    the quick suggestions of others do not wait for them. With --metrics HOST:9471, its metrics are at port 9472.

    Examples:

      trimtab-service worker

      trimtab-service worker --metrics 10.0.0.5:9471
    """
    _check_metrics(metrics, len(PARTS))
    _set_up_django()
    _expect_protection()
    import gc

    from service.config import liveness
    from service.embedded.keeping import SIGNALS, keep
    from service.embedded.signals import Waiting
    from service.trials.messages import SLOW_QUEUE
    from service.workers.compute import warm_up

    with tempfile.TemporaryDirectory(prefix="trimtab-worker-") as folder:
        children = [
            _part_of_worker(part, queue, niceness, Path(folder), metrics and _metrics_of(number, metrics))
            for number, (part, queue, niceness) in enumerate(
                zip(PARTS, ("compute", SLOW_QUEUE), (0, SLOW_NICENESS), strict=True)
            )
        ]
        for part in PARTS:
            _recover(part)
        warm_up()
        # Objects that the processes share are not looked at, so that their memory stays shared.
        gc.freeze()
        keep(children, Waiting(SIGNALS), liveness.touch_now)


def _part_of_worker(part: str, queue: str, niceness: int, folder: Path, metrics: str | None) -> "ForkedChild":
    """Return the process of a worker that empties a queue. Its name in the list of workers ends with its part."""
    from service.config import liveness
    from service.embedded.forked import ForkedChild
    from service.platform import predecessor

    def work() -> None:
        os.nice(niceness)
        _trace("worker")
        _serve_metrics(metrics)
        from service.trials.presence import announce

        _recover()
        liveness.touch_from_thread()
        announce()
        _consume(queue)

    alive = folder / queue
    named = {predecessor.NAME_VARIABLE: predecessor.local_name(part), liveness.VARIABLE: str(alive)}
    return ForkedChild(
        f"worker for {queue}",
        (),
        {**os.environ, **named},
        None,
        # A computation may go on until whoever stops this worker loses patience.
        stop_signals=((signal.SIGTERM, math.inf),),
        alive=alive,
        end=predecessor.end(),
        function=work,
    )


def _recover(part: str = "") -> None:
    """Give back what the predecessor of a worker, or of a part of it, has left. Wait until the database answers."""
    from django.db import InterfaceError, OperationalError, connections

    from service.platform.retries import retry_until
    from service.workers.losses import recover

    retry_until(partial(recover, part), (OperationalError, InterfaceError), math.inf, connections.close_all)
    connections.close_all()


@app.command()
def beat() -> None:
    """Run the short periodic tasks (expire leases, repeat lost messages), and deliver notifications.

    One process is enough; several do no harm.

    Example:

      trimtab-service beat
    """
    _set_up_service("beat")
    import threading

    from service.config import liveness

    liveness.touch_from_thread()
    threading.Thread(target=_schedule, name="schedule", daemon=True).start()
    from service.notices.messages import QUEUE

    _consume("sweep", QUEUE)


def _schedule() -> None:
    """Send the periodic tasks when they are due. If this ends, the process ends and is started again."""
    from celery.beat import Scheduler, Service

    from service.config.celery import app as celery_app

    try:
        # It sleeps at most a second, so that it notices the stop of the process. The schedule is fixed, so it stays in
        # memory: a file would be in the current folder, and a kill could damage it.
        Service(celery_app, max_interval=1, scheduler_cls=Scheduler).start()
    except Exception:
        logger.exception("the schedule of periodic tasks failed")
    os._exit(1)


def _consume(*queues: str) -> None:
    """Run the tasks of these queues in this thread until SIGTERM or SIGINT."""
    from service.config.celery import app as celery_app

    celery_app.Worker(
        pool="solo",
        queues=list(queues),
        hostname=f"{queues[0]}-{os.getpid()}@%h",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    ).start()


app.command()(backup)
app.command()(restore)
app.command()(doctor)
app.command()(replay)
app.add_typer(tenants, name="tenants")
app.add_typer(keycloak, name="keycloak")


def _add_pages(group: typer.Typer, program: str) -> None:
    """Add the address of its page to the help text of each command."""
    for command in group.registered_commands:
        function = "" if command.callback is None else command.callback.__name__
        name = f"{program} {command.name or function.replace('_', '-')}".replace(" ", "-")
        page = f"\b\nDocumentation:\n  CONSOLE/docs/reference/commands.html#{name}"
        command.epilog = f"{command.epilog}\n\n{page}" if command.epilog else page


_add_pages(app, "trimtab-service")
_add_pages(tenants, "trimtab-service tenants")
_add_pages(keycloak, "trimtab-service keycloak")

if __name__ == "__main__":
    app()
