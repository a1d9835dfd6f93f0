"""Creation, plans, warm starts and changes of the space of studies."""
