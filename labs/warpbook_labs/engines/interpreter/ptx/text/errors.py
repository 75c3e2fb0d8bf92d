"""What stops a kernel, or keeps it from being run at all."""

from __future__ import annotations


class PtxError(Exception):
    """A kernel can't be run, or not to its end; the message is for its author."""


class NotPtx(PtxError):
    """The text is not PTX that this interpreter can read."""


class Unsupported(PtxError):
    """Something that this interpreter does not know, and a GPU may: no mistake."""

    def __init__(self, what: str, line: int | None = None, way_on: str = "") -> None:
        self.line = line
        self.way_on = way_on or _way_on(what)
        place = "" if line is None else f" (line {line} of the source)"
        super().__init__(
            f"This interpreter does not know `{what}`{place}: the kernel can't be run "
            f"without a GPU.{' ' if self.way_on else ''}{self.way_on}"
        )


class TooLarge(Unsupported):
    """More than can be run on the CPU; a GPU may have room for it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.args = (what,)


def _way_on(what: str) -> str:
    """Say what to write instead, by the beginning of what is not known."""
    return next((way for name, way in _WAYS.items() if what.startswith(name)), "")


_WAYS = {
    "cp.async.bulk": "Copy by `cp.async` of 4 to 16 bytes, or by loads and stores.",
    "wgmma": "Use `mma.sync` of 16 x 8 elements here.",
    "tcgen05": "Use `mma.sync` of 16 x 8 elements here.",
    "wmma": "Use `mma.sync` of 16 x 8 elements here.",
    "a call through a list": "Call the function by its name.",
    "tex": "Read the array by its address.",
    "suld": "Read the array by its address.",
}


class BadLaunch(PtxError):
    """The grid, the block or the arguments do not fit the kernel."""


class Fault(PtxError):
    """The kernel did what ends it on a GPU too, such as an access out of bounds."""

    def __init__(self, kind: str, message: str, line: int | None) -> None:
        """Say what it did; the kind is one of `findings.Kind`."""
        super().__init__(message)
        self.kind = kind
        self.line = line


def on_line(line: int | None) -> str:
    """Say on which line, after a space; nothing where that is not known."""
    return "" if line is None else f" on line {line}"


class TooLong(PtxError):
    """The kernel took more steps or time than it may: it may never end."""

    def __init__(self, line: int | None, where: str = "") -> None:
        on = "" if line is None else f", and threads of it are on line {line}"
        super().__init__(
            "The kernel has run longer than an exercise may without a GPU"
            f"{where or on}. It does too much, or one of its loops never ends."
        )
        self.line = line


class Endless(PtxError):
    """A loop of the kernel never ends; the message says why."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line
