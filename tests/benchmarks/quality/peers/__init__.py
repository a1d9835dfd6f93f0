"""Optimisers of other packages, each a program that runs in an environment of its own, since their pins differ."""
