"""Compiles CUDA C++ in the jail."""

from __future__ import annotations

import contextlib

from warpbook_labs.compiler import architecture
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.compiler.nvrtc import VERBOSE, CompileError, compile_to_ptx
from warpbook_labs.lab.texts import at_line
from warpbook_labs.sandbox.work import Refused

__all__ = ["Job", "do", "prepare"]

Job = Compile
#: has the compiler load what it needs
_REHEARSAL = """
extern "C" __global__ void rehearse(float* x) { x[threadIdx.x] = sinf(x[0]) * 3.0f; }
"""


def prepare() -> None:
    """Load all that jobs need, which no file can be opened for later."""
    compile_to_ptx(_REHEARSAL)
    with contextlib.suppress(CompileError):
        compile_to_ptx("this does not compile")


def do(job: Compile) -> Compiled | Refused:
    try:
        compiled = compile_to_ptx(
            job.source, job.architecture, job.options, job.headers
        )
    except CompileError as problem:
        return Refused(str(problem))
    if job.is_for_all and architecture.may_differ(job.source):
        differs = _difference(job, compiled.ptx)
        if differs is not None:
            return differs
    resources_log = _resources_log(job) if job.resources_for else ""
    return Compiled(compiled.ptx, compiled.log, compiled.cubin, resources_log)


def _difference(job: Compile, ptx: str) -> Refused | None:
    """Say where a source is another one on other GPUs; None where it is not."""
    source, headers = architecture.unreadable(job.source, job.headers, job.architecture)
    line = None
    try:
        other = compile_to_ptx(source, job.architecture, job.options, headers)
        if architecture.is_same(ptx, other.ptx):
            return None
    except CompileError as problem:
        line = architecture.first_line(str(problem))
    words = at_line(
        "this asks which GPU or compiler it is for (`__CUDA_ARCH__` and the like), so "
        "it may be another kernel on another GPU. That is not supported without a GPU.",
        line,
    )
    return Refused(words, "unsupported", line)


def _resources_log(job: Compile) -> str:
    """Have the assembler tell; what it refuses, the interpreter may still run."""
    options = (*job.options, VERBOSE)
    try:
        return compile_to_ptx(job.source, job.resources_for, options, job.headers).log
    except CompileError:
        return ""
