"""Copies of a study's trials in trackers of experiments. Each module needs its own package."""
