"""The settings that embedded mode, hosted mode and tests share."""

import os
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from service.config.settings.auth import *
from service.config.settings.celery import *
from service.config.settings.limits import *
from service.config.settings.notices import *
from service.config.settings.rest import *
from service.tenancy.cursor import TenantCursor

ROOT = Path(__file__).resolve().parents[3]
# The applications that own tables. `trials` and `results` share the label `pipeline`, and so its migrations.
DOMAIN = ("tenancy", "identity", "studies", "notices", "matching", "trials", "live", "results", "fleet")
LABELS = ("tenancy", "identity", "studies", "notices", "matching", "pipeline", "live", "fleet")

INSTALLED_APPS = [*(f"service.{name}" for name in DOMAIN), "service.workers", "rest_framework", "drf_spectacular"]
MIGRATION_MODULES = {label: f"migrations.{label}" for label in LABELS}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MIDDLEWARE = [
    "service.config.requests.middleware",
    "service.config.content_security.middleware",
    "django.middleware.security.SecurityMiddleware",
    "service.config.documentation.Files",
    "django.middleware.common.CommonMiddleware",
]
ROOT_URLCONF = "service.config.urls"
ASGI_APPLICATION = "service.config.asgi.application"
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
APPEND_SLASH = False
SECURE_REFERRER_POLICY = "same-origin"
# Sent only if the request came by TLS, through a proxy of FORWARDED_ALLOW_IPS.
SECURE_HSTS_SECONDS = 365 * 24 * 3600

# The folders that a build writes: in a checkout where they are built, in a wheel inside the package (hatch_build.py).
_PACKAGED = Path(__file__).resolve().parents[2] / "_built"
BUILT = _PACKAGED if _PACKAGED.is_dir() else ROOT
# The built console. Vite names the files under assets/ by their content, so a browser may keep them without limit.
CONSOLE_DIR = Path(os.environ.get("TRIMTAB_CONSOLE_DIR", BUILT / "web" / "dist"))
WHITENOISE_ROOT = CONSOLE_DIR
WHITENOISE_INDEX_FILE = True
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/assets/"
WHITENOISE_AUTOREFRESH = False
# Pages of other sites cannot read these files.
WHITENOISE_ALLOW_ALL_ORIGINS = False
STATIC_URL = "static/"
# The built documentation site, which is served at /docs.
DOCS_DIR = Path(os.environ.get("TRIMTAB_DOCS_DIR", BUILT / "docs" / "_site"))

# The role that the service connects with. It owns no table: `migrate` connects as the owner and grants what is needed.
TRIMTAB_SERVICE_ROLE = os.environ.get("TRIMTAB_SERVICE_ROLE", "trimtab_service")

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "service.config.log_formats.Line"},
        "json": {"()": "service.config.log_formats.Json"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": os.environ.get("TRIMTAB_LOG_FORMAT", "line")}
    },
    "root": {"handlers": ["stderr"], "level": os.environ.get("TRIMTAB_LOG_LEVEL", "INFO").upper()},
    "loggers": {
        # without this, uvicorn installs its own handlers and every line is written twice
        "uvicorn": {"handlers": [], "propagate": True},
        "uvicorn.access": {"handlers": [], "propagate": False},
        "celery.beat": {"level": "WARNING"},
        # two sweeps every other second would write too many lines
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}


# PostgreSQL itself, for the connections that wait for notifications, if the others go through a pooler.
TRIMTAB_LISTEN_DATABASE_URL = os.environ.get("TRIMTAB_LISTEN_DATABASE_URL", "")


def database(url: str) -> dict[str, Any]:
    """Django's form of a libpq connection URL (`postgresql://user:password@host:port/name?sslmode=require`).

    A thread keeps its connection. The web process has a new thread for each request, so there TRIMTAB_DATABASE_POOL=N
    shares N connections among the threads.

    TRIMTAB_LISTEN_DATABASE_URL says that `url` is the address of a pooler, which gives each transaction another
    connection, so that no statement stays prepared.
    """
    try:
        parts: dict[str, Any] = {key: value for key, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError:
        # The library's own message quotes the address with its password.
        raise ImproperlyConfigured(
            "DATABASE_URL is not the address of a database. Use postgresql://USER:PASSWORD@HOST:PORT/NAME, with"
            " special characters as %XX."
        ) from None
    options: dict[str, Any] = {
        "server_side_binding": True,
        "cursor_factory": TenantCursor,
        "prepare_threshold": None if TRIMTAB_LISTEN_DATABASE_URL else 5,
    }
    pool = int(os.environ.get("TRIMTAB_DATABASE_POOL", "0"))
    if pool:
        # The pool doubles the pause between its attempts to connect. Without a short limit it would find a database
        # that has been away for minutes only minutes after its return. The next request begins a new attempt.
        options["pool"] = {"min_size": 1, "max_size": pool, "timeout": 20, "max_idle": 300, "reconnect_timeout": 1}
    fixed = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", "trimtab"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "CONN_MAX_AGE": 0 if pool else None,
        # A server-side cursor would not be a TenantCursor and would see no rows.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        # One round trip for each request with a query. Without it, requests fail after a restart of PostgreSQL.
        "CONN_HEALTH_CHECKS": bool(pool),
    }
    return {**fixed, "OPTIONS": {"application_name": "trimtab", "connect_timeout": 5, **options, **parts}}
