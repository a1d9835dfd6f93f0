"""Limits on sizes, numbers and times."""

import os

# The body of a REST request; gRPC has the same limit in rpc/interceptors.py.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
# Threads of the gRPC process for queries, each with a database connection.
TRIMTAB_GRPC_THREADS = int(os.environ.get("TRIMTAB_GRPC_THREADS", "8"))
# An agent that is silent for this time loses its trials to other agents.
TRIMTAB_LEASE_SECONDS = float(os.environ.get("TRIMTAB_LEASE_SECONDS", "30"))
TRIMTAB_HEARTBEAT_SECONDS = float(os.environ.get("TRIMTAB_HEARTBEAT_SECONDS", "5"))
# The operation of a worker that is silent for the first time is marked STALE; after the second it is computed again.
TRIMTAB_OPERATION_STALE_SECONDS = float(os.environ.get("TRIMTAB_OPERATION_STALE_SECONDS", "10"))
TRIMTAB_OPERATION_REQUEUE_SECONDS = float(os.environ.get("TRIMTAB_OPERATION_REQUEUE_SECONDS", "30"))

# The quotas of a tenant for which the operator sets no others (tenancy/limits.py explains each). They are generous:
# they stop accidents.
TRIMTAB_LIMITS = {
    name: int(os.environ.get(f"TRIMTAB_LIMIT_{name.upper()}", default))
    for name, default in {
        "studies": 10_000,
        "active_trials": 100_000,
        "stored_trials": 20_000_000,
        "log_bytes": 100 * 1024**3,
        "suggestions_per_minute": 600_000,
        "worker_seconds_per_day": 20 * 24 * 3600,
    }.items()
}
