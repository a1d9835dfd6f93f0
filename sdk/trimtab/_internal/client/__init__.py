"""The calls of a client: studies, agents, and identities."""
