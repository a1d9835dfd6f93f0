"""Limits on sizes, numbers and times."""

import os

# docs/reference/limits.md lists these and all other bounds.

# The body of a REST request. A short value takes twenty times its bytes in memory, so this is the bound of gRPC for
# requests with lists (rpc/admission.py).
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# The time in which the headers of a REST request must arrive, counted from the connection or their first byte.
TRIMTAB_HTTP_HEADER_SECONDS = float(os.environ.get("TRIMTAB_HTTP_HEADER_SECONDS", "20"))
# The time in which the body of a REST request must arrive.
TRIMTAB_HTTP_BODY_SECONDS = float(os.environ.get("TRIMTAB_HTTP_BODY_SECONDS", "60"))
# Open connections of one web process. Beyond it uvicorn answers 503.
TRIMTAB_HTTP_CONNECTIONS = int(os.environ.get("TRIMTAB_HTTP_CONNECTIONS", "5000"))
# Seconds of CPU that one request or one study's part of a sweep may use, and those of one costly suggestion or insight.
TRIMTAB_REQUEST_CPU_SECONDS = float(os.environ.get("TRIMTAB_REQUEST_CPU_SECONDS", "10"))
TRIMTAB_OPERATION_CPU_SECONDS = float(os.environ.get("TRIMTAB_OPERATION_CPU_SECONDS", "60"))
# Seconds of CPU after which a worker's process for slow operations computes a suggestion.
TRIMTAB_OPERATION_QUICK_CPU_SECONDS = float(os.environ.get("TRIMTAB_OPERATION_QUICK_CPU_SECONDS", "3"))
# REST requests of one tenant that one web process serves at the same time. The others wait for their turn.
TRIMTAB_HTTP_REQUESTS_PER_TENANT = int(os.environ.get("TRIMTAB_HTTP_REQUESTS_PER_TENANT", "4"))
# Event streams in one web process: of all callers, of one tenant and of one principal.
TRIMTAB_STREAMS = int(os.environ.get("TRIMTAB_STREAMS", "2000"))
TRIMTAB_STREAMS_PER_TENANT = int(os.environ.get("TRIMTAB_STREAMS_PER_TENANT", "1000"))
TRIMTAB_STREAMS_PER_PRINCIPAL = int(os.environ.get("TRIMTAB_STREAMS_PER_PRINCIPAL", "100"))
# Threads of the gRPC process for queries, each with a database connection.
TRIMTAB_GRPC_THREADS = int(os.environ.get("TRIMTAB_GRPC_THREADS", "8"))
# Calls in progress in one gRPC process, including held calls: of all callers, of one tenant and of one principal.
TRIMTAB_GRPC_CALLS = int(os.environ.get("TRIMTAB_GRPC_CALLS", "10000"))
TRIMTAB_GRPC_CALLS_PER_TENANT = int(os.environ.get("TRIMTAB_GRPC_CALLS_PER_TENANT", "5000"))
TRIMTAB_GRPC_CALLS_PER_PRINCIPAL = int(os.environ.get("TRIMTAB_GRPC_CALLS_PER_PRINCIPAL", "1000"))
# The time in which a connection must be established, with TLS and the beginning of HTTP/2.
TRIMTAB_GRPC_HANDSHAKE_SECONDS = float(os.environ.get("TRIMTAB_GRPC_HANDSHAKE_SECONDS", "20"))
# The time in which the request of a call must arrive.
TRIMTAB_GRPC_REQUEST_SECONDS = float(os.environ.get("TRIMTAB_GRPC_REQUEST_SECONDS", "60"))
# Traces that one process begins, or continues for a caller, in one second; the others are not sampled. Traces are off
# unless OTEL_EXPORTER_OTLP_ENDPOINT is set.
TRIMTAB_TRACES_PER_SECOND = int(os.environ.get("TRIMTAB_TRACES_PER_SECOND", "100"))
# An agent that is silent for this time loses its trials to other agents.
TRIMTAB_LEASE_SECONDS = float(os.environ.get("TRIMTAB_LEASE_SECONDS", "30"))
TRIMTAB_HEARTBEAT_SECONDS = float(os.environ.get("TRIMTAB_HEARTBEAT_SECONDS", "5"))
# The operation of a worker that is silent for the first time is marked STALE; after the second it is computed again.
TRIMTAB_OPERATION_STALE_SECONDS = float(os.environ.get("TRIMTAB_OPERATION_STALE_SECONDS", "10"))
TRIMTAB_OPERATION_REQUEUE_SECONDS = float(os.environ.get("TRIMTAB_OPERATION_REQUEUE_SECONDS", "30"))

# Rows of a tenant that no quota counts: agents, valid API tokens, and unused enrolments.
TRIMTAB_AGENTS_PER_TENANT = int(os.environ.get("TRIMTAB_AGENTS_PER_TENANT", "100000"))
TRIMTAB_TOKENS_PER_TENANT = int(os.environ.get("TRIMTAB_TOKENS_PER_TENANT", "10000"))
# API tokens that one person may create within an hour.
TRIMTAB_TOKENS_PER_HOUR = int(os.environ.get("TRIMTAB_TOKENS_PER_HOUR", "100"))
TRIMTAB_ENROLMENTS_PER_TENANT = int(os.environ.get("TRIMTAB_ENROLMENTS_PER_TENANT", "10000"))
# Reported jobs that a tenant keeps; the oldest are removed.
TRIMTAB_MATCHING_JOBS = int(os.environ.get("TRIMTAB_MATCHING_JOBS", "100000"))
# Records of all tenants that one process keeps in memory. The tenants that were asked for longest ago are dropped.
TRIMTAB_MATCHING_INDEXED = int(os.environ.get("TRIMTAB_MATCHING_INDEXED", "1000000"))

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
        "matching_records": 20_000,
    }.items()
}
