"""The service that runs with a data folder: its addresses, and an environment to reach its database."""

from __future__ import annotations

import json
import os
from pathlib import Path


class NotRunning(Exception):
    """No service runs with the data folder."""


def enter(data: Path) -> dict[str, str]:
    """Set this process's environment to that of the running service, and return its `console` and `grpc` addresses.

    Raises NotRunning.
    """
    try:
        service: dict[str, str] = json.loads((data / "service.json").read_text())
    except FileNotFoundError:
        raise NotRunning(f"no service runs with the data folder {data}") from None
    os.environ["DJANGO_SETTINGS_MODULE"] = "service.config.settings.embedded"
    os.environ["TRIMTAB_DATA_DIR"] = str(data)
    os.environ["DATABASE_URL"] = service["database_url"]
    return service
