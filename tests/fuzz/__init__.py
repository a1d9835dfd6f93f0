"""Requests that nobody would think of, to the whole service as it runs. TRIMTAB_FUZZ_EXAMPLES says how many."""
