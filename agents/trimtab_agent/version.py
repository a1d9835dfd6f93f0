"""The version of this distribution, which the agent also reports to the service."""

from importlib.metadata import version

VERSION = version("trimtab-agent")
