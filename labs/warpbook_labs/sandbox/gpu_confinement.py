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

import warpbook_labs
import warpbook_monitors
from warpbook_labs.sandbox import linux
from warpbook_labs.sandbox.call_filters import refuse_harm
from warpbook_labs.sandbox.linux import MAKING, READING, USING, WRITING, allow_files
from warpbook_labs.sandbox.policies import (
    DEVICES,
    GPU_BOUNDS,
    PYTHON_PATHS,
    PYTHON_READABLE,
    READABLE,
    TRACE_BYTES,
)
from warpbook_monitors.budget import bound


def close_files(hidden: Sequence[str], writable: str = "") -> bool:
    """Have the kernel refuse this thread, and all it starts, other files for good.

    Args:
        hidden: folders that stay closed, though they lie among Python's packages.
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
    given = [place for name in READABLE for place in Path("/").glob(name[1:])]
    for prefix in (sys.prefix, sys.base_prefix):
        given += [Path(prefix, name) for name in PYTHON_READABLE]
    paths = sysconfig.get_paths()
    given += [Path(paths[kind]) for kind in PYTHON_PATHS]
    for package in (warpbook_labs, warpbook_monitors):
        given += map(Path, package.__path__)
    given = [place.resolve() for place in given if place.exists()]
    for name in (*sys.path, *os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        folder = Path(name).resolve()
        if name and not any(folder.is_relative_to(place) for place in given):
            # of a folder with somebody's sources, only what can be imported
            given += filter(_is_code, folder.iterdir() if folder.is_dir() else ())
    for place in dict.fromkeys(given):
        yield from _but(place, hidden)


def _is_code(path: Path) -> bool:
    is_library = path.suffix in (".py", ".so") or ".so." in path.name
    return is_library or (path / "__init__.py").is_file()


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
    bound({**GPU_BOUNDS, **file_bytes})
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
