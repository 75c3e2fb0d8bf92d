"""The version, once for Python; a test holds frontend/package.json equal to it."""

__version__ = "0.1.0"
