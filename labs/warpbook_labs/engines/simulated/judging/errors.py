"""What ends the judging of a program."""

from __future__ import annotations


class ProgramRefused(Exception):
    """No machine could have been asked this, or it is more than a lab may ask."""
