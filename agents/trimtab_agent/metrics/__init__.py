"""Read metrics from the output of a trial. It runs in the supervisor and uses only the standard library."""
