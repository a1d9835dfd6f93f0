"""Authentication: tokens, credentials of agents, login codes and console sessions."""
