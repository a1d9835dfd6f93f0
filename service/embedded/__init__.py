"""Embedded mode: one command starts PostgreSQL from a wheel and all processes under one supervisor."""
