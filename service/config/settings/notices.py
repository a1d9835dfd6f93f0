"""Settings of notifications: what webhooks may reach, and the mail server."""

import os

# The address of the console, such as https://trimtab.example.org, for links in mail and webhooks; "": without links.
TRIMTAB_CONSOLE_URL = os.environ.get("TRIMTAB_CONSOLE_URL", "")
# Networks that are not public, and that webhooks may reach nevertheless, also without TLS: "10.1.0.0/16, 10.2.3.4".
TRIMTAB_WEBHOOK_NETWORKS = os.environ.get("TRIMTAB_WEBHOOK_NETWORKS", "")
# Notifications that a tenant keeps; the oldest are removed with the log of their deliveries.
TRIMTAB_NOTICES_PER_TENANT = int(os.environ.get("TRIMTAB_NOTICES_PER_TENANT", "1000"))
# Channels that a tenant may have.
TRIMTAB_CHANNELS_PER_TENANT = int(os.environ.get("TRIMTAB_CHANNELS_PER_TENANT", "20"))

# The mail server, such as mail.example.org; "": no channel can send mail.
EMAIL_HOST = os.environ.get("TRIMTAB_MAIL_HOST", "")
# The port of the mail server.
EMAIL_PORT = int(os.environ.get("TRIMTAB_MAIL_PORT", "25"))
# The user and the password for mail servers that need them.
EMAIL_HOST_USER = os.environ.get("TRIMTAB_MAIL_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("TRIMTAB_MAIL_PASSWORD", "")
# TLS to the mail server. "": no TLS, "starttls", or "tls" from the beginning of the connection.
EMAIL_USE_TLS = os.environ.get("TRIMTAB_MAIL_TLS", "") == "starttls"
EMAIL_USE_SSL = os.environ.get("TRIMTAB_MAIL_TLS", "") == "tls"
EMAIL_TIMEOUT = 10
# The sender of mail.
DEFAULT_FROM_EMAIL = os.environ.get("TRIMTAB_MAIL_FROM", "trimtab@localhost")
