"""Agents and their leases: grant, renew, expire, settle."""
