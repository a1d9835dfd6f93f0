"""The supervisor: a process that runs trials one after another and writes their results even if the agent dies.

It imports only the standard library and this package, and little of both, because one process for each slot of the
agent stays in memory.
"""
