"""Stops what can't be undone at the moment when the first run on copies tries it.

Python tells each file that is opened, each process and each connection to its audit
hooks before it happens, and a hook that raises prevents it. A hook can't be taken away
again: it is added with the first `--try` of a kernel and does nothing otherwise.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from warpbook.kernel.trying.refusals import NotIsolated

_FILES = "writes files"
_PROCESS = "starts or signals processes"
_EVENTS = {
    **dict.fromkeys(
        (
            *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link"),
            *("os.symlink", "os.truncate", "os.chmod", "shutil.copyfile"),
            *("shutil.move", "shutil.rmtree", "sqlite3.connect"),
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            *("subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec"),
            *("os.posix_spawn", "os.kill", "signal.pthread_kill"),
        ),
        _PROCESS,
    ),
    **dict.fromkeys(
        ("socket.connect", "socket.bind", "socket.sendto", "urllib.Request"),
        "talks over the network",
    ),
    "builtins.input": "asks for input",
    "builtins.breakpoint": "stops in a debugger",
    "_thread.start_new_thread": "starts threads",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: who compiles keeps what was compiled, and nothing else, in files and by processes
_COMPILERS = (
    *("torch._inductor", "torch._dynamo", "torch.utils.cpp_extension", "triton."),
    *("importlib", "numba.", "cupy.", "torch._functorch"),
)
#: loaders end their own workers
_LOADERS = ("torch.utils.data",)


class _Watching(threading.local):
    """The file of the cell that this thread runs on copies; None if it runs none."""

    filename: str | None = None


_watching = _Watching()
_is_added = False


@contextlib.contextmanager
def guarded(filename: str) -> Iterator[None]:
    """Raise `NotIsolated` where this thread does what can't be undone.

    Args:
        filename: of the cell's code, to tell the line.
    """
    global _is_added
    if not _is_added:
        sys.addaudithook(_heard)
        _is_added = True
    _watching.filename = filename
    try:
        yield
    finally:
        _watching.filename = None


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    filename = _watching.filename
    if filename is None:
        return
    reason = _EVENTS.get(event)
    if event == "open" and _is_for_writing(arguments):
        reason = "opens a file for writing"
    if reason is None:
        return
    line = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.startswith(_COMPILERS) or module.startswith(_LOADERS):
            return
        if frame.f_code.co_filename == filename:
            # the outermost is the cell itself
            line = frame.f_lineno
        frame = frame.f_back
    raise NotIsolated(reason, line)


def _is_for_writing(arguments: tuple[Any, ...]) -> bool:
    path, mode, flags = arguments[:3]
    if path == os.devnull:
        return False
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & _WRITING)
