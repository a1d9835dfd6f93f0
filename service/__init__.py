"""The Trimtab service."""
