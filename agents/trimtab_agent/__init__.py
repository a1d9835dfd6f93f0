"""The agent that runs Trimtab's trials on a cluster.

Nothing is imported here: the supervisor of a trial imports this package at every trial's start.
"""
