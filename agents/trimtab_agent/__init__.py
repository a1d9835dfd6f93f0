"""The agent that runs Trimtab's trials on a cluster.

Keep this module empty: the supervisor of a trial imports the package at the start of every trial.
"""
