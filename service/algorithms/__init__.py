"""Search algorithms, called algorithms: given what was measured, which configurations to try next."""
