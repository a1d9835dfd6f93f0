"""What Celery runs: costly suggestions, sweeps, insight."""
