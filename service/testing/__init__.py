"""Tests and generators for authors of algorithms. They need pytest and Hypothesis (the extra `testing`)."""
