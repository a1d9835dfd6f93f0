"""The tasks that Celery runs: costly suggestions, sweeps, insight."""
