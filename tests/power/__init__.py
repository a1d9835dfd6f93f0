"""The power of the tests: which lines they run (`make coverage`), and which mistakes they find (`make mutants`)."""
