"""Functions that make services, rows and specs for tests."""
