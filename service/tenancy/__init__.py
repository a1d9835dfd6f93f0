"""Ownership of rows: tenants, principals, access to rows and the audit trail."""
