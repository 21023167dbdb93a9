"""The version of this package, for itself and for the build."""

__version__ = "0.1.0.dev0"
