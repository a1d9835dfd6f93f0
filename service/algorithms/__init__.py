"""Search algorithms, called designers: given what was measured, which configurations to try next."""
