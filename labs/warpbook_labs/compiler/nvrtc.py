"""Compiles CUDA C++ to PTX with NVIDIA's own compiler, which needs no driver.

It reads any file that the source includes, and shows lines of it in its messages:
somebody else's source is compiled only in a process that sees no file worth reading.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpbook_labs.compiler import cuda_headers, nvrtc
from warpbook_labs.errors import NotInstalled

#: what `nvcc` defines without an include, by way of `cuda_runtime.h`
_MACROS = {
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "CHAR_BIT": "8",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "4294967295u",
    "LLONG_MAX": "9223372036854775807ll",
    "LLONG_MIN": "(-9223372036854775807ll - 1)",
    "ULLONG_MAX": "18446744073709551615ull",
}
#: what NVRTC says of an `#include`
_NO_HEADER = re.compile(r" open source file \"([^\"]+)\"")
_NO_HEADERS = (
    " Only the headers for device code that NVRTC has within itself can be included "
    "here. CUDA's built-in types and functions, such as `float4`, `printf` and "
    "`__shfl_down_sync`, need none."
)
_HOST_FUNCTION = "without execution space annotations"
_DEVICE_ALONE = (
    " A kernel calls a function of the host here: write `__device__` before it."
)
#: the first NVRTC with headers within itself
_WITH_HEADERS = (13, 3)
#: with headers for older ones, whose names say no version from this major one on
_WHEELS = ("nvidia-cuda-cccl", "nvidia-cuda-crt", "nvidia-cuda-runtime")
_PLAIN_NAMES = 13


def lacking_headers(log: str) -> str:
    """Say how to have a header of CUDA's that this machine lacks; or nothing."""
    missing = _NO_HEADER.search(log)
    if missing is None or not cuda_headers.is_of_cuda(missing[1]):
        return ""
    major, minor = nvrtc.version_numbers()
    if (major, minor) >= _WITH_HEADERS:
        return ""
    suffix = f"-cu{major}" if major < _PLAIN_NAMES else ""
    wheels = " ".join(f"'{package}{suffix}=={major}.{minor}.*'" for package in _WHEELS)
    return (
        f"NVRTC {major}.{minor} has no headers within itself, and this one is in no "
        f"toolkit of CUDA {major} that is installed: pip install {wheels}."
    )


def advice(log: str) -> str:
    """Say what to do about a log, after a space; or nothing."""
    words = _DEVICE_ALONE if _HOST_FUNCTION in log else ""
    missing = _NO_HEADER.search(log)
    if missing is not None:
        words += _NO_HEADERS
    return words


#: the name of the learner's file in messages
SOURCE_NAME = "kernel.cu"
#: has the assembler tell what each kernel takes; asked with a real architecture
VERBOSE = "--ptxas-options=-v"
#: more than any exercise needs
MAX_SOURCE_CHARACTERS = 200_000
_MAX_LOG_CHARACTERS = 20_000


class CompileError(Exception):
    """The source is no CUDA C++; the message is the compiler's, with line numbers."""


@dataclass(frozen=True)
class Compiled:
    """What became of a source."""

    ptx: str
    #: warnings; empty if there are none
    log: str
    #: the program for one kind of GPU; empty if it was compiled to PTX alone
    cubin: bytes = b""


def compile_to_ptx(
    source: str,
    architecture: str = "compute_90",
    options: Sequence[str] = (),
    headers: Mapping[str, bytes] | None = None,
    instances: Sequence[str] = (),
) -> Compiled:
    """Compile CUDA C++, with line numbers kept.

    Args:
        source: the text; kernels that are `extern "C"` keep their names.
        architecture: virtual architecture, such as "compute_75"; or a real one, such
            as "sm_90", for which there is a cubin, too.
        instances: of templates, that nothing in the text asks for.

    Raises:
        CompileError: it does not compile.
        NotInstalled: NVRTC is not there.
    """
    if len(source) > MAX_SOURCE_CHARACTERS:
        raise CompileError(
            f"The source has {len(source):,} characters; {MAX_SOURCE_CHARACTERS:,} are "
            "allowed."
        )
    if "\0" in source:
        raise CompileError("The source has a NUL character in it.")
    nvrtc = _nvrtc()
    error, program = nvrtc.nvrtcCreateProgram(
        source.encode(),
        SOURCE_NAME.encode(),
        len(headers or {}),
        list((headers or {}).values()),
        [name.encode() for name in headers or {}],
    )
    _check(nvrtc, error)
    try:
        for instance in instances:
            _check(nvrtc, *nvrtc.nvrtcAddNameExpression(program, instance.encode()))
        arguments = [
            f"--gpu-architecture={architecture}",
            "--generate-line-info",
            "--std=c++20",
            *(f"--define-macro={name}={value}" for name, value in _MACROS.items()),
            *options,
        ]
        (failed,) = nvrtc.nvrtcCompileProgram(
            program, len(arguments), [argument.encode() for argument in arguments]
        )
        log = _text(nvrtc, program, "ProgramLog")
        if failed:
            raise CompileError(log[:_MAX_LOG_CHARACTERS] or f"NVRTC failed: {failed}")
        ptx = _text(nvrtc, program, "PTX")
        cubin = b""
        if architecture.startswith("sm_"):
            cubin = _held(nvrtc, program, "CUBIN")
        return Compiled(ptx, log[:_MAX_LOG_CHARACTERS], cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def version() -> str:
    """Name NVRTC's version, such as "13.0".

    Raises:
        NotInstalled: NVRTC is not there.
    """
    return ".".join(map(str, version_numbers()))


def version_numbers() -> tuple[int, int]:
    """Give NVRTC's major and minor version.

    Raises:
        NotInstalled: NVRTC is not there.
    """
    _, major, minor = _nvrtc().nvrtcVersion()
    return int(major), int(minor)


def _nvrtc() -> Any:
    try:
        # it is large, and may not be there
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        _check(nvrtc, nvrtc.nvrtcVersion()[0])
    except (ImportError, OSError, RuntimeError) as problem:
        raise NotInstalled(
            "NVIDIA's compiler NVRTC can't be loaded "
            f"({problem}). Install it: pip install 'warpbook-labs[cuda]'"
        ) from None
    return nvrtc


def _check(nvrtc: Any, error: Any) -> None:
    if error:
        raise CompileError(nvrtc.nvrtcGetErrorString(error)[1].decode())


def _text(nvrtc: Any, program: Any, what: str) -> str:
    # the assembler puts one between its parts
    return str(_held(nvrtc, program, what).replace(b"\0", b""), errors="replace")


def _held(nvrtc: Any, program: Any, what: str) -> bytes:
    error, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    _check(nvrtc, error)
    # NVRTC writes into it, and every b" " of a process is one and the same object
    held = bytearray(size)
    (error,) = getattr(nvrtc, f"nvrtcGet{what}")(program, held)
    _check(nvrtc, error)
    return bytes(held)
