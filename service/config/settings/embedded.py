"""Settings of embedded mode. `trimtab-service up` sets TRIMTAB_DATA_DIR and DATABASE_URL for its processes."""

import os
from pathlib import Path

from service.config.settings.base import *

DATA_DIR = Path(os.environ["TRIMTAB_DATA_DIR"])
DATABASES = {"default": database(os.environ["DATABASE_URL"])}
SECRET_KEY = (DATA_DIR / "secret-key").read_text().strip()
TRIMTAB_ADMIN_TOKEN_FILE = str(DATA_DIR / "admin-token")
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *os.environ.get("TRIMTAB_ALLOWED_HOSTS", "").split(",")]

CELERY_BROKER_URL = "filesystem://localhost"
CELERY_BROKER_TRANSPORT = "service.embedded.broker:Transport"
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "data_folder_in": str(DATA_DIR / "broker"),
    "data_folder_out": str(DATA_DIR / "broker"),
    "control_folder": str(DATA_DIR / "broker" / "control"),
    # Seconds between two reads of the folder. Every 0.01 s, an idle worker would take 3 % of a core.
    "polling_interval": float(os.environ.get("TRIMTAB_POLLING_SECONDS", "0.03")),
}
