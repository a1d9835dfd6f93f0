"""The algorithms, which suggest the next configurations to measure from the measurements so far."""
