"""Makes what tests need: services, rows, specs."""
