"""Policies beside the algorithm: replicates, early ends of trials and studies, the final check. Plain Python."""
