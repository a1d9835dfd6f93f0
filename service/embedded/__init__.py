"""The service on one machine with one command: PostgreSQL from a wheel and every process under one supervisor."""
