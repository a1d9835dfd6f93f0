"""Studies, trials and operations: rows, their steps under the study's lock, and queries."""
