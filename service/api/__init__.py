"""The HTTP interface: REST, server-sent events, sign-in, health, metrics. It translates requests to actions."""
