"""What Triton's jailed compiler is asked."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from warpbook_labs.compiler.jobs import Compiled
from warpbook_labs.sandbox.work import Job, Work


class Variant(Struct, frozen=True):
    """A Triton kernel with numbers that are fixed when it is compiled."""

    kernel: str
    #: what it is to be called
    entry: str
    #: of the other parameters, in order, such as "*float32" and "int32"
    types: tuple[str, ...]
    constants: tuple[tuple[str, int], ...]
    #: which of the others are numbers or addresses that 16 divides
    even: tuple[int, ...] = ()


class CompileTriton(Job[Compiled], frozen=True, tag="compile triton"):
    """Compile Triton to PTX for a real architecture."""

    work: ClassVar[Work] = Work(
        "warpbook_labs.engines.interpreter.triton.compiling",
        Compiled,
        "warpbook_labs.engines.interpreter.triton.compiling",
    )
    source: str
    architecture: str
    variants: tuple[Variant, ...]
