"""Policies beside the designer: replicates, early ends of trials and studies, the final check. Plain Python."""
