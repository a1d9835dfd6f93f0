"""Django's settings: `embedded` and `hosted` for the two ways to run the service, `test` for its tests."""
