"""The version, in one place that needs no import of the package's dependencies."""

__version__ = "0.1.0.dev0"
