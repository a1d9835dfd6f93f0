"""What happens to the trials of a study: ask, tell, enqueue, supply, the end of the search, budgets and quotas."""
