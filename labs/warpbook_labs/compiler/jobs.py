"""What the jailed compilers are asked, and what they answer."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from warpbook_labs.sandbox.work import Job, Work


class Compiled(Struct, frozen=True, tag="compiled"):
    """The program, and the compiler's warnings."""

    ptx: str
    log: str
    #: of a real architecture: the program for it
    cubin: bytes = b""
    #: what the assembler said of each kernel, if that was asked and it could be made
    resources_log: str = ""


class Compile(Job[Compiled], frozen=True, tag="compile"):
    """Compile CUDA C++ to PTX, and for a real architecture, "sm_90", to its cubin."""

    work: ClassVar[Work] = Work(
        "warpbook_labs.compiler.compiling", Compiled, "warpbook_labs.compiler.compiling"
    )
    source: str
    architecture: str = "compute_90"
    options: tuple[str, ...] = ()
    #: compiled once more for this one, to tell what its kernels take; "" is not asked
    resources_for: str = ""
    #: that the source may include, by name
    headers: dict[str, bytes] = {}
    #: of templates, such as "sum<float,4>": what nobody names is not compiled
    instances: tuple[str, ...] = ()
    #: one program must stand for those of all GPUs: a source that asks which one it is
    #: compiled for is "unsupported"
    is_for_all: bool = False


class Variant(Struct, frozen=True):
    """A Triton kernel with numbers that are fixed when it is compiled."""

    kernel: str
    #: what it is to be called
    entry: str
    #: of the other parameters, in order, such as "*float32" and "int32"
    types: tuple[str, ...]
    constants: tuple[tuple[str, int | float], ...]
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
