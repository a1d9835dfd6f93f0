"""Component files: read their text, find all errors in it, and describe its content.

Agent and service both use this package, so that both apply the same rules. It opens no file and starts no program: the
agent finds the files that a text refers to (`trimtab_agent.components.loader`), and runs what the file describes. The
service also reads study files with `reader.py`, and the agent its policy.
"""
