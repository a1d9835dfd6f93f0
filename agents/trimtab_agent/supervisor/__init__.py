"""A process that runs one trial after another: it finishes the one it has, and writes its result, whether the agent
lives or not.

Imports the standard library and its own package alone, and little of it: a process for each slot of the agent stays in
memory.
"""
