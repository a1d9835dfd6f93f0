"""Where trials run: each runner knows one way to start, follow and end a job."""
