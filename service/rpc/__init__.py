"""The gRPC interface: it translates messages to actions and back, and makes no decisions."""
