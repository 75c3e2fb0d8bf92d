"""Compiles CUDA C++ in the jail."""

from __future__ import annotations

import contextlib

from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.compiler.nvrtc import VERBOSE, CompileError, compile_to_ptx
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
    """Do a job."""
    try:
        compiled = compile_to_ptx(
            job.source, job.architecture, job.options, job.headers
        )
    except CompileError as problem:
        return Refused(str(problem))
    resources_log = _resources_log(job) if job.resources_for else ""
    return Compiled(compiled.ptx, compiled.log, compiled.cubin, resources_log)


def _resources_log(job: Compile) -> str:
    """Have the assembler tell; what it refuses, the interpreter may still run."""
    options = (*job.options, VERBOSE)
    try:
        return compile_to_ptx(job.source, job.resources_for, options, job.headers).log
    except CompileError:
        return ""
