"""Sign-in: identity provider, administrator's token, and lifetimes of credentials."""

import os
import re
from datetime import timedelta

from django.core.exceptions import ImproperlyConfigured

from service.platform.addresses import networks

# The local administrator's token. It allows everything; an installation with Keycloak does not need it.
TRIMTAB_ADMIN_TOKEN = os.environ.get("TRIMTAB_ADMIN_TOKEN", "")
TRIMTAB_ADMIN_TOKEN_FILE = os.environ.get("TRIMTAB_ADMIN_TOKEN_FILE", "")

# The port at which agents and the SDK reach gRPC on the console's host. 0: the console's own port, as behind a proxy.
TRIMTAB_GRPC_PORT = int(os.environ.get("TRIMTAB_GRPC_PORT", "0"))

# Keycloak's realm, such as https://sso.example.org/realms/trimtab, exactly as its tokens name it. Empty: none.
TRIMTAB_OIDC_ISSUER = os.environ.get("TRIMTAB_OIDC_ISSUER", "").rstrip("/")
# It becomes part of the page's Content-Security-Policy.
ISSUER = re.compile(r"https?://([\w.-]+|\[[\da-fA-F:]+\])(:\d+)?(/[\w.~%-]+)*")
if TRIMTAB_OIDC_ISSUER and not ISSUER.fullmatch(TRIMTAB_OIDC_ISSUER):
    raise ImproperlyConfigured(
        f"TRIMTAB_OIDC_ISSUER is {TRIMTAB_OIDC_ISSUER!r}. Set a web address, http:// or https://"
    )
# The audience that a token must name.
TRIMTAB_OIDC_AUDIENCE = os.environ.get("TRIMTAB_OIDC_AUDIENCE", "trimtab")
# Only asymmetric algorithms are allowed (oidc.py refuses to start with others).
TRIMTAB_OIDC_ALGORITHMS = os.environ.get("TRIMTAB_OIDC_ALGORITHMS", "RS256").split(",")
# The address of the realm's keys, if the service needs another one than browsers. Empty: the issuer states it.
TRIMTAB_OIDC_JWKS_URL = os.environ.get("TRIMTAB_OIDC_JWKS_URL", "")
# The allowed difference between the clocks of Keycloak and the service.
TRIMTAB_OIDC_LEEWAY_SECONDS = float(os.environ.get("TRIMTAB_OIDC_LEEWAY_SECONDS", "30"))
# Members of the group /tenants/acme/member have the role `member` in the tenant `acme`.
TRIMTAB_OIDC_GROUPS = os.environ.get("TRIMTAB_OIDC_GROUPS", "/tenants")
# The clients of Keycloak with which people sign in to the console and to the command line.
TRIMTAB_OIDC_CONSOLE_CLIENT = os.environ.get("TRIMTAB_OIDC_CONSOLE_CLIENT", "trimtab-console")
TRIMTAB_OIDC_CLI_CLIENT = os.environ.get("TRIMTAB_OIDC_CLI_CLIENT", "trimtab-cli")

# Addresses and networks of the proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted; *: all.
try:
    TRIMTAB_BELIEVED_PROXIES = networks(os.environ.get("FORWARDED_ALLOW_IPS", ""))
except ValueError as error:
    raise ImproperlyConfigured(
        f"FORWARDED_ALLOW_IPS: {error}. Set addresses and networks of proxies, such as 10.0.0.7,192.0.2.0/24"
    ) from None

# A process caches a principal for this time, so a revocation takes effect within it.
TRIMTAB_TRUST_SECONDS = float(os.environ.get("TRIMTAB_TRUST_SECONDS", "2"))
# The API tokens of a person are suspended if the person has not signed in for this time. 0: never.
TRIMTAB_OWNER_ABSENCE_DAYS = float(os.environ.get("TRIMTAB_OWNER_ABSENCE_DAYS", "90"))
# An agent renews its credential after a day. It may be offline for the rest of the lifetime without enrolling again.
TRIMTAB_AGENT_CREDENTIAL = timedelta(seconds=float(os.environ.get("TRIMTAB_AGENT_CREDENTIAL_SECONDS", 7 * 86400)))
TRIMTAB_AGENT_RENEWAL = timedelta(seconds=float(os.environ.get("TRIMTAB_AGENT_RENEWAL_SECONDS", 86400)))
