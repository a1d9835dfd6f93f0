"""The programs that make the documentation site from the repository."""
