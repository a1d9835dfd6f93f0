"""Settings of hosted mode: any number of processes on any number of machines, described by the environment alone.

Required: DATABASE_URL (PostgreSQL, with the role that the service connects with), CELERY_BROKER_URL (Redis or
RabbitMQ), TRIMTAB_SECRET_KEY, and a way to sign in: TRIMTAB_OIDC_ISSUER (Keycloak), TRIMTAB_ADMIN_TOKEN or
TRIMTAB_ADMIN_TOKEN_FILE. Only `migrate` also needs TRIMTAB_OWNER_DATABASE_URL (with the role that owns the tables).
Optional: TRIMTAB_LISTEN_DATABASE_URL (PostgreSQL itself, if DATABASE_URL is the address of PgBouncer or another pooler
in transaction mode), TRIMTAB_ALLOWED_HOSTS (comma-separated names by which browsers reach the web process; default:
every name), TRIMTAB_LOG_LEVEL, TRIMTAB_LOG_FORMAT (`line` instead of `json`), and the variables in auth.py and
limits.py.
"""

import os

from django.core.exceptions import ImproperlyConfigured

from service.config.settings.base import *

_NEEDED = {
    "DATABASE_URL": "the address of PostgreSQL, such as postgresql://trimtab_service:password@database.example:5432/trimtab",
    "CELERY_BROKER_URL": "the address of the broker, such as redis://broker.example:6379/0",
    "TRIMTAB_SECRET_KEY": "a long random text that signs sign-ins, the same for every process",
}
_missing = [f"{name}: {meaning}" for name, meaning in _NEEDED.items() if not os.environ.get(name)]
if not (TRIMTAB_OIDC_ISSUER or TRIMTAB_ADMIN_TOKEN or TRIMTAB_ADMIN_TOKEN_FILE):
    _missing.append(
        "TRIMTAB_OIDC_ISSUER: the realm of Keycloak, such as https://sso.example.org/realms/trimtab;\n"
        "  or TRIMTAB_ADMIN_TOKEN or TRIMTAB_ADMIN_TOKEN_FILE: the administrator's token, or a file that contains it"
    )
if _missing:
    raise ImproperlyConfigured("These environment variables are not set:\n  " + "\n  ".join(_missing))

if "TRIMTAB_LOG_FORMAT" not in os.environ:
    LOGGING["handlers"]["stderr"]["formatter"] = "json"
DATABASES = {"default": database(os.environ["DATABASE_URL"])}
SECRET_KEY = os.environ["TRIMTAB_SECRET_KEY"]
# No link uses the host name of a request, so every name is accepted unless the operator restricts it.
ALLOWED_HOSTS = os.environ.get("TRIMTAB_ALLOWED_HOSTS", "*").split(",")

CELERY_BROKER_URL = os.environ["CELERY_BROKER_URL"]
if CELERY_BROKER_URL.startswith(("redis:", "rediss:")):
    # A request must not hang if the broker hangs. The sweep sends a message again if it was not sent.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 2, "socket_timeout": 10}
    CELERY_BROKER_TRANSPORT = "service.config.redis_broker:Transport"
