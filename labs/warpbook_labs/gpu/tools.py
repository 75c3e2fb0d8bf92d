"""What the trusted process does on the GPU by kernels of its own.

Our own kernels and those of labs, compiled once for a kind of GPU and kept in the data
folder.

Compiling ours takes 0.3 s of every submission, before which nothing can run on the GPU;
those of labs take as long, and seconds in Triton.
Whoever can write there can also change this package, so nothing new has to be trusted;
a grader for others has a folder that they can't write.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import tempfile
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases import execution
from warpbook_labs.compiler.nvrtc import compile_to_ptx
from warpbook_labs.gpu.driver import Device, Prepared
from warpbook_labs.gpu.kernels import SOURCE, chunk_of
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
    what = "\0".join((architecture, source)).encode()
    return kept(what, lambda: compile_to_ptx(source, architecture).cubin)


def kept(what: bytes, compiled: Callable[[], bytes]) -> bytes:
    """Give a program of our own, or of a lab's; have it compiled where none is kept.

    Args:
        what: all that decides what it is, beside the compilers that are installed.
    """
    compilers = "\0".join(map(_version, ("nvidia-cuda-nvrtc", "triton")))
    key = sha256(compilers.encode() + b"\0" + what).hexdigest()
    path = data_folder() / "programs" / f"{key[:32]}.cubin"
    program = _read(path)
    if program is None:
        program = compiled()
        _write(path, program)
    return program


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


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


_BLOCK = 256
_MOST_BLOCKS = 4096
_NOTHING = (1 << 64) - 1
#: of L2, so that nothing of it is left whatever the cache keeps
_FLUSHED = 4
#: nobody else's kernel runs when ours do
_PATIENCE_S = 20.0


class Found(NamedTuple):
    """Where a kernel found something first, and how often."""

    first: int
    how_many: int


class Tools:
    """Trusted kernels, and what they need of the GPU's memory."""

    def __init__(self, device: Device) -> None:
        self.device = device
        source = SOURCE.read_text(encoding="utf-8")
        self._program = device.load(kept_program(source, device.architecture))
        self._found = device.allocate(16)
        self._flush_bytes = _FLUSHED * device.l2_bytes // 16 * 16
        self._flushed = 0
        self._digest_key = secrets.randbits(32)

    def poison(self, address: int, size_bytes: int, key: int) -> None:
        """Fill memory with what is no number; its size is a multiple of 4."""
        self._run("poison", size_bytes // 4, address, size_bytes // 4, key)

    def untouched(self, arena: int, begin: int, end: int, key: int) -> None:
        """Look for bytes that are no longer as `poison` left them; see `outcome`."""
        if begin < end:
            self._run("untouched", end - begin, arena, begin, end, key, self._found)

    def fill(
        self, to: int, pool: int, length: int, item: int, count: int, key: int
    ) -> None:
        """Take elements from a pool of some length, at places that a key decides."""
        chunk, places = chunk_of(length)
        self._run("fill", count, to, pool, count, places, chunk, key, item)

    def compare(
        self,
        arena: int,
        at: int,
        right: int,
        count: int,
        dtype: str,
        bound: float,
        key: int,
    ) -> None:
        """Compare an output with what is right; see `outcome`."""
        kind = np.dtype(dtype)
        exact = execution.NumberArgument(struct.pack("<d", bound))
        of_kind = ord(kind.kind)
        self._run(
            *("compare", count, arena, at, right, count, kind.itemsize, of_kind),
            *(exact, key, self._found),
        )

    def digest(self, address: int, size_bytes: int) -> int:
        """Give a number that any change of this memory changes."""
        self.clear(0, 0)
        words = size_bytes // 4
        self._run("digest", words, address, words, self._digest_key, self._found)
        return self.outcome().first

    def flush(self) -> None:
        """Have other things in the L2 cache than what kernels will ask for."""
        if not self._flushed:
            self._flushed = self.device.allocate(self._flush_bytes)
            self.poison(self._flushed, self._flush_bytes, 0)
        self.device.forget_kept_lines()
        self._run(
            "flush", self._flush_bytes // 16, self._flushed, self._flush_bytes // 16,
            self._found,
        )  # fmt: skip

    def spin_ns(self, steps: int) -> float:
        """Tell how long a kernel takes that only counts, in one block."""
        given = (
            execution.IntegerArgument(steps),
            execution.IntegerArgument(self._found),
        )
        launch = execution.Launch("spin", (1, 1, 1), (32, 1, 1), given)
        prepared = self.device.prepare(self._program, launch, {})
        return self.device.timed_ns([prepared], _PATIENCE_S)

    def clear(self, first: int = _NOTHING, count: int = 0) -> None:
        self.device.upload(self._found, np.array([first, count], np.uint64))

    def outcome(self) -> Found:
        """Wait, and tell what was found since `clear`."""
        self.device.wait(_PATIENCE_S)
        held: NDArray[Any] = self.device.download(self._found, 16).view(np.uint64)
        return Found(int(held[0]), int(held[1]))

    def _run(self, name: str, threads: int, *given: int | execution.Argument) -> None:
        if threads <= 0:
            return
        arguments = tuple(
            execution.IntegerArgument(argument)
            if isinstance(argument, int)
            else argument
            for argument in given
        )
        grid = (min(-(-threads // _BLOCK), _MOST_BLOCKS), 1, 1)
        launch = execution.Launch(name, grid, (_BLOCK, 1, 1), arguments)
        prepared: Prepared = self.device.prepare(self._program, launch, {})
        self.device.launch(prepared)
