"""The version, in one place: read from the installed distribution."""

from importlib.metadata import version

__version__ = version("safari-fl")
