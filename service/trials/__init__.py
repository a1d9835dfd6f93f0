"""Trials of a study: ask, tell, enqueue, supply, the end of the search, budgets, quotas, messages to workers."""
