"""What stops a kernel, or keeps it from being run at all."""

from __future__ import annotations


class PtxError(Exception):
    """A kernel can't be run, or not to its end; the message is for its author."""


class NotPtx(PtxError):
    """The text is not PTX that this interpreter can read."""


class Unsupported(PtxError):
    """An instruction, or a form of one, that this interpreter does not know."""

    def __init__(self, what: str, line: int | None = None) -> None:
        """Say what it is and where the source has it."""
        place = "" if line is None else f" (line {line} of the source)"
        super().__init__(
            f"This interpreter does not know `{what}`{place}: the kernel can't be run "
            "without a GPU."
        )


class BadLaunch(PtxError):
    """The grid, the block or the arguments do not fit the kernel."""


class Fault(PtxError):
    """The kernel did what ends it on a GPU too, such as an access out of bounds."""

    def __init__(self, kind: str, message: str, line: int | None) -> None:
        """Say what it did; the kind is one of `findings.Kind`."""
        super().__init__(message)
        self.kind = kind
        self.line = line


class TooLong(PtxError):
    """The kernel took more steps or time than it may: it may never end."""

    def __init__(self, line: int | None) -> None:
        """Say where its threads were."""
        at = "" if line is None else f", and threads of it are on line {line}"
        super().__init__(
            f"The kernel has run longer than an exercise may without a GPU{at}. Does "
            "one of its loops never end?"
        )
        self.line = line
