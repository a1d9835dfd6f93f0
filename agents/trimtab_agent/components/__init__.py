"""Component files: what is tuned, and how a configuration's values reach it."""
