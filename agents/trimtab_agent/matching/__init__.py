"""Application matching: proven settings for jobs that resemble tuned applications.

Keep this module empty: `trimtab-agent wrap` imports the package before it starts a command.
"""
