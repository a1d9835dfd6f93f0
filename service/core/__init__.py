"""What a study is about, in plain Python: spaces, encodings, problems, trials, states and errors."""
