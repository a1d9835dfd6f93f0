"""Trimtab SDK."""
