"""Our own kernels, compiled once for a kind of GPU and kept in the data folder.

Compiling them takes 0.3 s of every submission, before which nothing can run on the GPU.
Whoever can write there can also change this package, so nothing new has to be trusted;
a grader for others has a folder that they can't write.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from warpbook_labs.compiler.nvrtc import compile_to_ptx
from warpbook_monitors.data_folder import data_folder

_MOST_BYTES = 16 << 20
_DIGEST_BYTES = sha256().digest_size


def kept_program(source: str, architecture: str) -> bytes:
    """Give the program of a source of ours; compile it where none is kept.

    Args:
        source: CUDA C++.
        architecture: such as "sm_90".

    Raises:
        NotInstalled: NVRTC is not here, and nothing is kept.
    """
    path = _path(source, architecture)
    cubin = _read(path)
    if cubin is None:
        cubin = compile_to_ptx(source, architecture).cubin
        _write(path, cubin)
    return cubin


def _path(source: str, architecture: str) -> Path:
    try:
        compiler = version("nvidia-cuda-nvrtc")
    except PackageNotFoundError:
        compiler = ""
    key = sha256("\0".join((compiler, architecture, source)).encode()).hexdigest()
    return data_folder() / "programs" / f"{key[:32]}.cubin"


def _read(path: Path) -> bytes | None:
    """Read what is kept; None where it is not, or not whole."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
    except OSError:
        return None
    digest, cubin = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return cubin if cubin and sha256(cubin).digest() == digest else None


def _write(path: Path, cubin: bytes) -> None:
    """Keep it; without a place for it, it is compiled again."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(sha256(cubin).digest() + cubin)
        os.replace(name, path)
