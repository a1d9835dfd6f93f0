"""Notices about studies and records: the list in the console, webhooks, and mail."""
