"""From what a trial printed or wrote to numbers. Runs in the trial's supervisor: the standard library alone."""
