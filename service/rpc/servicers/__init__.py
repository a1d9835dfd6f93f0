"""One module for each gRPC service."""
