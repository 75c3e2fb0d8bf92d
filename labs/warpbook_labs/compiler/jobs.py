"""What the jailed compiler of CUDA C++ is asked, and what it answers."""

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
    #: one program must stand for those of all GPUs: a source that asks which one it is
    #: compiled for is "unsupported"
    is_for_all: bool = False
