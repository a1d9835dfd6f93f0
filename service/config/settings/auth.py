"""Who may sign in, and how long what they hold is good for."""

import os
import re
from datetime import timedelta

from django.core.exceptions import ImproperlyConfigured

# The local administrator's token. It opens everything, so an installation with Keycloak may well do without.
TRIMTAB_ADMIN_TOKEN = os.environ.get("TRIMTAB_ADMIN_TOKEN", "")
TRIMTAB_ADMIN_TOKEN_FILE = os.environ.get("TRIMTAB_ADMIN_TOKEN_FILE", "")

# The port at which agents and the SDK reach gRPC on the console's host. 0: the console's own, as behind a proxy.
TRIMTAB_GRPC_PORT = int(os.environ.get("TRIMTAB_GRPC_PORT", "0"))

# Keycloak's realm, such as https://sso.example.org/realms/trimtab: exactly as its tokens name it. Empty: none.
TRIMTAB_OIDC_ISSUER = os.environ.get("TRIMTAB_OIDC_ISSUER", "").rstrip("/")
# It becomes part of the page's Content-Security-Policy.
ISSUER = re.compile(r"https?://([\w.-]+|\[[\da-fA-F:]+\])(:\d+)?(/[\w.~%-]+)*")
if TRIMTAB_OIDC_ISSUER and not ISSUER.fullmatch(TRIMTAB_OIDC_ISSUER):
    raise ImproperlyConfigured(f"TRIMTAB_OIDC_ISSUER is {TRIMTAB_OIDC_ISSUER!r}; allowed: a web address")
TRIMTAB_OIDC_AUDIENCE = os.environ.get("TRIMTAB_OIDC_AUDIENCE", "trimtab")
# Asymmetric algorithms only (oidc.py refuses to start with others).
TRIMTAB_OIDC_ALGORITHMS = os.environ.get("TRIMTAB_OIDC_ALGORITHMS", "RS256").split(",")
# Where the service itself finds the realm's keys, if not where browsers do. Empty: where the issuer says they are.
TRIMTAB_OIDC_JWKS_URL = os.environ.get("TRIMTAB_OIDC_JWKS_URL", "")
# How far Keycloak's clock and this one may differ.
TRIMTAB_OIDC_LEEWAY_SECONDS = float(os.environ.get("TRIMTAB_OIDC_LEEWAY_SECONDS", "30"))
# The group /tenants/acme/member makes its members `member` of the tenant `acme`.
TRIMTAB_OIDC_GROUPS = os.environ.get("TRIMTAB_OIDC_GROUPS", "/tenants")
TRIMTAB_OIDC_CONSOLE_CLIENT = os.environ.get("TRIMTAB_OIDC_CONSOLE_CLIENT", "trimtab-console")
TRIMTAB_OIDC_CLI_CLIENT = os.environ.get("TRIMTAB_OIDC_CLI_CLIENT", "trimtab-cli")

# Proxies that are believed about where a call came from, by address; *: whoever it is. uvicorn reads the same variable.
TRIMTAB_BELIEVED_PROXIES = frozenset(os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1").split(","))

# For so long a process believes a token or a session without another look: what is revoked is out within it.
TRIMTAB_TRUST_SECONDS = float(os.environ.get("TRIMTAB_TRUST_SECONDS", "2"))
# An agent renews its credential a day after it got it; it may be away for the rest without having to enrol again.
TRIMTAB_AGENT_CREDENTIAL = timedelta(seconds=float(os.environ.get("TRIMTAB_AGENT_CREDENTIAL_SECONDS", 7 * 86400)))
TRIMTAB_AGENT_RENEWAL = timedelta(seconds=float(os.environ.get("TRIMTAB_AGENT_RENEWAL_SECONDS", 86400)))
