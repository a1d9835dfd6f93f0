"""`trimtab vizier`: an endpoint on this machine for clients of OSS Vizier."""

import os
from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.connection import connect
from trimtab.cli.output import say

EXAMPLES = (
    "Examples:\n\n"
    "`trimtab vizier`\n\n"
    "`trimtab vizier --listen 127.0.0.1:0`\n\n"
    "The client, before it makes a study:\n\n"
    '`clients.environment_variables.server_endpoint = "127.0.0.1:6006"`'
)


def vizier(
    listen: Annotated[str, typer.Option(help="HOST:PORT of a loopback address; port 0 selects a free one.")] = (
        "127.0.0.1:6006"
    ),
    state: Annotated[
        Path | None,
        typer.Option(help="The file for metadata and deletions. [default: ~/.local/state/trimtab/vizier.db]"),
    ] = None,
) -> None:
    """Serve clients of OSS Vizier (google-vizier) on this machine until Ctrl-C.

    The studies of the clients are studies of the service, under your login. The line `ready vizier=HOST:PORT` says that
    the endpoint answers. Only your own processes, and root's, may use it: they work with your rights.
    """
    from trimtab.integrations.vizier.server import Endpoint

    base = os.environ.get("XDG_STATE_HOME")
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "state"
    with connect() as client:
        client.who_am_i()  # an endpoint without a login would fail each call
        endpoint = Endpoint(client, listen, state or folder / "trimtab" / "vizier.db")
        say(f"ready vizier={endpoint.address}")
        try:
            endpoint.wait()
        finally:
            endpoint.close()
