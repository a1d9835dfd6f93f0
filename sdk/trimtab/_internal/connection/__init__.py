"""The connection to the service: address, login, credentials, TLS, calls and their repetition."""
