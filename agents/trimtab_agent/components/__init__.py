"""Component files: they describe what is tuned and how a configuration's values reach it."""
