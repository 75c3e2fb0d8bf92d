"""Kernels for the tests of the PTX interpreter, compiled by NVRTC."""

from __future__ import annotations

import functools

from warpbook_labs.compiler.cuda_headers import headers_for
from warpbook_labs.compiler.nvrtc import compile_to_ptx
from warpbook_labs.engines.interpreter.ptx.machine.machine import Machine


@functools.cache
def ptx_of(source: str) -> str:
    return compile_to_ptx(source, headers=headers_for(source)).ptx


def machine(source: str) -> Machine:
    """A machine with this CUDA C++ on it."""
    return Machine(ptx_of(source))
