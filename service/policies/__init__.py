"""Policies in addition to the algorithm: resampling, pruning, stopping rules and the final check, in plain Python."""
