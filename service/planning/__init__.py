"""Studies before and between trials: create, plan, warm start, changes of the space."""
