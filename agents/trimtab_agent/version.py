"""The version of this distribution, which the agent also reports to the service."""

VERSION = "0.1.0"
