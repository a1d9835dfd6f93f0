"""The HTTP door: REST, server-sent events, sign-in, health, metrics. Requests are translated to actions here."""
