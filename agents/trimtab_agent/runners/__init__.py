"""Runners: each one knows one way to start, follow and end a job."""
