"""Other libraries and services that work with studies. Each module needs its own package."""
