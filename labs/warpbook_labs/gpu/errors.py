"""What may go wrong with CUDA's driver, in words."""

from __future__ import annotations


class DriverError(Exception):
    """The driver refused; the message says what."""


class Crashed(DriverError):
    """A kernel made the GPU stop it; nothing more can be done in this process."""


class Hung(DriverError):
    """A kernel did not end in time; nothing more can be done in this process."""


class BadArguments(DriverError):
    """A kernel can't be launched so; the message is for who wrote the launch."""
