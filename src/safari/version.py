"""The version, in one place: read from the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("safari-fl")
except PackageNotFoundError:  # a node that has only safari-fl-client
    __version__ = version("safari-fl-client")
