"""The domain in plain Python: spaces, encodings, problems, trials, states and errors."""
