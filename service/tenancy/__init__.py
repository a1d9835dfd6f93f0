"""Who owns a row: tenants, principals, the access door and the audit trail."""
