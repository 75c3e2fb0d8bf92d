"""What may be done about what NVRTC says, in words: it is no nvcc, and has no host."""

from __future__ import annotations

import re

from warpbook_labs.compiler import cuda_headers, nvrtc

#: what NVRTC says of an `#include`
_NO_HEADER = re.compile(r" open source file \"([^\"]+)\"")
_NO_HEADERS = (
    " Only the headers for device code that NVRTC has within itself can be included "
    "here. CUDA's built-in types and functions, such as `float4`, `printf` and "
    "`__shfl_down_sync`, need none."
)
_HINTS = {
    "without execution space annotations": " All code is the GPU's here: write "
    "`__device__` before a function, a `constexpr` one too.",
    "annotation on lambda is not allowed": " Leave `__device__` out of a lambda: "
    "within a kernel it is the GPU's anyway.",
}
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
    words = "".join(hint for said, hint in _HINTS.items() if said in log)
    missing = _NO_HEADER.search(log)
    if missing is not None:
        words += _NO_HEADERS
        if twin := cuda_headers.twin_of(missing[1]):
            words += f" For `<{missing[1]}>` there is `<{twin}>`, in `cuda::std`."
    return words
