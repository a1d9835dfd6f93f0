"""The gRPC door: translates messages to actions and back; decides nothing."""
