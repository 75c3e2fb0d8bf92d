"""Shuts a learner's process in that needs the GPU, so as well as that can be.

It keeps the files that Python, PyTorch and CUDA read, and the GPU's devices. Files are
closed before CUDA starts threads, since each thread is held by itself; the rest comes
when all is loaded and before the learner's source is.
"""

from __future__ import annotations

import os
import resource
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpbook_labs.sandbox import linux
from warpbook_labs.sandbox.call_filters import refuse_harm
from warpbook_labs.sandbox.landlock import MAKING, READING, USING, WRITING, allow_files
from warpbook_labs.sandbox.policies import (
    DEVICES,
    GPU_BOUNDS,
    READABLE,
    TRACE_BYTES,
)


def close_files(hidden: Sequence[str], writable: str = "") -> bool:
    """Have the kernel refuse this thread, and all it starts, other files for good.

    Args:
        hidden: folders that stay closed, though they lie in one that is open.
        writable: a folder in which files may be made; "" for none.

    Returns:
        Whether this system can do that.
    """
    linux.gain_no_rights()
    own = Path("/proc/self").resolve()
    # a rule is of an inode: while it is open, the system makes no other for it
    os.open(own, os.O_PATH | os.O_CLOEXEC)
    closed = [Path(name).resolve() for name in hidden]
    return allow_files(
        [
            *((path, READING) for path in _readable(closed)),
            *((path, USING) for path in _devices()),
            # CUDA names its threads there; where it can't, it fails (error 304)
            (own, WRITING),
            *([(Path(writable), MAKING)] if writable else []),
        ]
    )


def _readable(hidden: list[Path]) -> Iterator[Path]:
    python = [sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *sys.path]
    for name in dict.fromkeys([*READABLE, *python]):
        path = Path(name)
        if name and path.exists() and path.resolve() != Path("/"):
            # /proc/self is another one for each process that follows the link
            yield from _but(path.resolve(), hidden)


def _but(path: Path, hidden: list[Path]) -> Iterator[Path]:
    """Give a folder, or where something hidden is in it, all else that it has."""
    if path in hidden:
        return
    inside = [place for place in hidden if place.is_relative_to(path)]
    if not inside:
        yield path
        return
    for inner in path.iterdir():
        if not inner.is_symlink():
            yield from _but(inner, inside)


def _devices() -> Iterator[Path]:
    for pattern in DEVICES:
        yield from Path("/").glob(pattern[1:])


def shut_in(is_traced: bool = False) -> tuple[bool, bool]:
    """Take from this process all that a learner's source does not need.

    Args:
        is_traced: it will write a trace, which may be long.

    Returns:
        Whether it has a network of its own, without any other end; and whether its
        system calls are filtered.
    """
    file_bytes = {resource.RLIMIT_FSIZE: TRACE_BYTES} if is_traced else {}
    linux.bound({**GPU_BOUNDS, **file_bytes})
    # a thread that CUDA started keeps the old network; a learner's never does
    is_apart = linux.leave(linux.NEW_NETWORK | linux.NEW_IPC)
    linux.drop_capabilities()
    linux.hide_memory()
    return is_apart, refuse_harm()


def isolation_words(files: bool, network: bool, calls: bool) -> str:
    """Tell in words how well a learner's process on the GPU is shut in."""
    held = [
        *(["opens no file but Python's, PyTorch's and CUDA's"] if files else ()),
        *(["has no network"] if network or calls else ()),
        *(["starts and reaches no other process"] if calls else ()),
    ]
    lost = [
        *([] if files else ["can't close files to it (Landlock)"]),
        *([] if calls else ["can't filter its system calls (seccomp)"]),
    ]
    words = "in a process with bounded memory and time"
    if held:
        words += " that " + ", ".join(held)
    return words + ("; this system " + " and ".join(lost) if lost else "")
