"""The version of this package, which the package and its build read."""

__version__ = "0.1.0.dev0"
