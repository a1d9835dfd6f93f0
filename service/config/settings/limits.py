"""Sizes and times that bound what one caller can ask of the service, and how soon it gives something up."""

import os

# A REST request's body; gRPC has the same limit in rpc/interceptors.py.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
# Threads of the gRPC process that may query at a time, each with a database connection.
TRIMTAB_GRPC_THREADS = int(os.environ.get("TRIMTAB_GRPC_THREADS", "8"))
# An agent that is silent for so long loses its trials to others.
TRIMTAB_LEASE_SECONDS = float(os.environ.get("TRIMTAB_LEASE_SECONDS", "30"))
TRIMTAB_HEARTBEAT_SECONDS = float(os.environ.get("TRIMTAB_HEARTBEAT_SECONDS", "5"))
# A worker that is silent for so long is marked STALE; after the longer time its operation is computed again.
TRIMTAB_OPERATION_STALE_SECONDS = float(os.environ.get("TRIMTAB_OPERATION_STALE_SECONDS", "10"))
TRIMTAB_OPERATION_REQUEUE_SECONDS = float(os.environ.get("TRIMTAB_OPERATION_REQUEUE_SECONDS", "30"))
