"""CPython runs this at its start: it sets the thresholds of the collector from the environment, for any program."""

import gc
import os

if thresholds := os.environ.get("GC_THRESHOLDS"):
    gc.set_threshold(*map(int, thresholds.split(",")))
