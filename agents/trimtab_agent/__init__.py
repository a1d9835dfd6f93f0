"""Trimtab agent."""
