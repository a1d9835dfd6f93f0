"""Who is calling: the local administrator's token, one-time login codes and console sessions."""
