"""The command `trimtab-service`: the whole service on one machine (`up`), or one of its processes."""

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from service.operating import app as tenants
from service.replay.cli import replay

app = typer.Typer(
    name="trimtab-service",
    help="Runs the Trimtab tuning service.",
    epilog="On one machine: `trimtab-service up`. On many: `migrate` once, then any number of `web`, `grpc`, `worker` "
    "and `beat`, each configured by its environment: DATABASE_URL, CELERY_BROKER_URL, TRIMTAB_SECRET_KEY and "
    "TRIMTAB_ADMIN_TOKEN.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Host = Annotated[str, typer.Option(help="Address to listen on. Other than loopback, it takes TLS.")]
TlsFile = Annotated[Path | None, typer.Option(help="PEM file; read again when it changes.")]
Plaintext = Annotated[
    bool, typer.Option("--plaintext", help="Do not encrypt, though other machines can reach it: a proxy in front does.")
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the service's data [default: ~/.local/share/trimtab, or below XDG_DATA_HOME].",
        show_default=False,
        file_okay=False,
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")]
GrpcPort = Annotated[int, typer.Option(min=0, max=65535, help="Port of gRPC; 0 picks a free one.")]


def _data_folder(given: Path | None) -> Path:
    if given is not None:
        return given
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "trimtab"


def _set_up_django() -> None:
    """Hosted settings unless the environment names others. A setting that is missing ends the command with its name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "service.config.settings.hosted")
    import django
    from django.core.exceptions import ImproperlyConfigured

    try:
        django.setup()
    except ImproperlyConfigured as error:
        print(f"trimtab-service: {error}", file=sys.stderr)
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
    """Run the whole service on this machine until Ctrl-C: PostgreSQL, web, gRPC, worker and periodic work.

    Nothing has to be installed or configured. The administrator's token is in DATA_DIR/admin-token, logs are in
    DATA_DIR/logs. Prints a line `ready console=... grpc=...` when everything answers.

    Examples:

      trimtab-service up

      trimtab-service up --data-dir ./data --port 0 --grpc-port 0
    """
    from service.embedded.supervisor import Options, StartError, Supervisor

    try:
        Supervisor(Options(_data_folder(data_dir), host, port, grpc_port, workers, plaintext)).run()
    except StartError as error:
        print(f"trimtab-service: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


@app.command()
def login_link(data_dir: DataDir = None) -> None:
    """Print a new one-time link to the console of the service that `up` runs.

    Example:

      trimtab-service login-link --data-dir ./data
    """
    folder = _data_folder(data_dir).expanduser().resolve()
    try:
        service = json.loads((folder / "service.json").read_text())
    except FileNotFoundError:
        print(f"trimtab-service: no service runs with the data folder {folder}", file=sys.stderr)
        raise typer.Exit(1) from None
    os.environ["DJANGO_SETTINGS_MODULE"] = "service.config.settings.embedded"
    os.environ["TRIMTAB_DATA_DIR"] = str(folder)
    os.environ["DATABASE_URL"] = service["database_url"]
    _set_up_django()
    from service.embedded.announce import login_link as new_link

    print(new_link(service["console"]))


@app.command()
def migrate() -> None:
    """Bring the database's tables up to date. Run it before the other processes of a new version start.

    The tables belong to the role of TRIMTAB_OWNER_DATABASE_URL. The other processes connect with that of DATABASE_URL,
    which sees the rows of one tenant at a time; it is made here if there is none yet and the owner may make one.

    Example:

      TRIMTAB_OWNER_DATABASE_URL=postgresql://trimtab_owner:secret@db:5432/trimtab
      DATABASE_URL=postgresql://trimtab_service:other@db:5432/trimtab ... trimtab-service migrate
    """
    _become_owner()
    _set_up_django()
    from django.core.management import call_command

    from service.tenancy import protection

    try:
        protection.ensure_role(os.environ["TRIMTAB_SERVICE_ROLE"], os.environ.get("TRIMTAB_SERVICE_PASSWORD"))
    except protection.CannotMakeRole as error:
        print(f"trimtab-service: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    call_command("migrate", interactive=False, skip_checks=True, verbosity=1)


def _become_owner() -> None:
    """Make this process connect as the tables' owner, who grants the service's role what it needs."""
    from psycopg.conninfo import conninfo_to_dict

    owner, service = os.environ.get("TRIMTAB_OWNER_DATABASE_URL"), os.environ.get("DATABASE_URL")
    if not owner or not service:
        print(
            "trimtab-service: these must both be set: TRIMTAB_OWNER_DATABASE_URL, with the role that owns the tables,"
            " and DATABASE_URL, with the role that the service connects with.",
            file=sys.stderr,
        )
        raise typer.Exit(2)
    role = conninfo_to_dict(service)
    if not role.get("user") or role["user"] == conninfo_to_dict(owner).get("user"):
        print(
            "trimtab-service: DATABASE_URL must name a role of its own, not that of TRIMTAB_OWNER_DATABASE_URL:"
            " row-level security does not hold for the owner of a table.",
            file=sys.stderr,
        )
        raise typer.Exit(2)
    os.environ["DATABASE_URL"] = owner
    os.environ["TRIMTAB_SERVICE_ROLE"] = str(role["user"])
    if role.get("password"):
        os.environ["TRIMTAB_SERVICE_PASSWORD"] = str(role["password"])


def _set_up_service() -> None:
    """Set up Django; refuse to serve where the database would show one tenant's rows to another."""
    _set_up_django()
    from django.db import OperationalError, connections

    from service.tenancy import protection

    while True:
        try:
            faults = protection.faults()
            break
        except OperationalError as error:
            logging.getLogger(__name__).warning("waiting for the database: %s", error)
            time.sleep(1)
    connections.close_all()
    if faults:
        print("trimtab-service: refuses to start:\n  " + "\n  ".join(faults), file=sys.stderr)
        raise typer.Exit(2)


@app.command()
def web(host: Host = "127.0.0.1", port: Annotated[int, typer.Option(min=1, max=65535)] = 8470) -> None:
    """Serve REST, server-sent events and the console.

    Example:

      trimtab-service web --host 0.0.0.0 --port 8470
    """
    # Django gives each request a thread of its own, so connections are shared among them.
    os.environ.setdefault("TRIMTAB_DATABASE_POOL", "8")
    _set_up_service()
    import uvicorn

    uvicorn.run(
        "service.config.asgi:application",
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        # Longer than clients and proxies keep a connection that nobody uses (Caddy: two minutes). Where this side is
        # the first to close it, a request that is just on its way fails.
        timeout_keep_alive=200,
        # Streams of events are open for as long as a browser looks; nobody waits for them to end.
        timeout_graceful_shutdown=2,
    )


@app.command()
def grpc(
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8471,
    tls_cert: TlsFile = None,
    tls_key: TlsFile = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="Serve only clients with a certificate that one of these has signed, PEM.")
    ] = None,
    plaintext: Plaintext = False,
) -> None:
    """Serve gRPC to the SDK, the command line and the agents.

    Beyond this machine it is encrypted. Certificates that are replaced count without a restart.

    Examples:

      trimtab-service grpc --host 0.0.0.0 --tls-cert /etc/trimtab/tls.crt --tls-key /etc/trimtab/tls.key

      trimtab-service grpc --host 10.0.0.5 --plaintext     (behind a proxy that encrypts)
    """
    _set_up_service()
    from service.rpc.server import run
    from service.rpc.tls import TlsError, chosen

    try:
        files = chosen(host, tls_cert, tls_key, tls_client_ca, plaintext=plaintext)
    except TlsError as error:
        print(f"trimtab-service: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    run(host, port, files)


@app.command()
def worker() -> None:
    """Compute suggestions that take long, one at a time; start as many of these as there are cores to spare.

    Example:

      trimtab-service worker
    """
    _set_up_service()
    from service.trials.presence import announce
    from service.workers.compute import warm_up

    warm_up()
    announce()
    _consume("compute")


@app.command()
def beat() -> None:
    """Do the short periodic work: expire leases, enqueue again what was lost. One is enough, several do no harm.

    Example:

      trimtab-service beat
    """
    _set_up_service()
    import threading

    threading.Thread(target=_schedule, name="schedule", daemon=True).start()
    _consume("sweep")


def _schedule() -> None:
    """Sends the periodic tasks when they are due. Whatever ends it ends the process, which is then started again."""
    from celery.beat import Scheduler, Service

    from service.config.celery import app as celery_app

    try:
        # At most a second of sleep: the stop of the process is noticed between two. A schedule kept in a file would lie
        # in whichever folder this was started from, and a kill could spoil it; it is fixed, so memory does.
        Service(celery_app, max_interval=1, scheduler_cls=Scheduler).start()
    except Exception:
        logging.getLogger(__name__).exception("the schedule broke")
    os._exit(1)


def _consume(queue: str) -> None:
    """Runs the tasks of `queue` in this thread until SIGTERM or SIGINT."""
    from service.config.celery import app as celery_app

    celery_app.Worker(
        pool="solo",
        queues=[queue],
        hostname=f"{queue}-{os.getpid()}@%h",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    ).start()


app.command()(replay)
app.add_typer(tenants, name="tenants")

if __name__ == "__main__":
    app()
