"""Conversion between protocol messages and the SDK's classes: the only package that knows the fields."""
