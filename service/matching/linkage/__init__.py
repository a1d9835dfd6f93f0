"""The record linkage behind matching: features, similarities, the index; plain Python and NumPy, without a server."""
