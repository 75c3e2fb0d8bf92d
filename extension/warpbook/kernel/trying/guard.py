"""Stops what can't be undone at the moment when the first run on copies tries it.

Python tells each file that is opened, each process and each connection to its audit
hooks before it happens, and a hook that raises prevents it. What they don't tell, such
as a file that torch writes in C++, is told by the name of the function that is called.
An audit hook can't be taken away again: it is added with the first `--try` of a kernel
and does nothing otherwise.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import gc
import inspect
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeGuard

from warpbook.kernel.trying.refusals import NotIsolated

_FILES = "writes files"
_PROCESS = "starts or signals processes"
_NETWORK = "talks over the network"
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
        (
            *("socket.__new__", "socket.connect", "socket.bind", "socket.sendto"),
            "urllib.Request",
        ),
        _NETWORK,
    ),
    "builtins.input": "asks for input",
    "builtins.breakpoint": "stops in a debugger",
}
#: what the person's code calls, by what its full name begins with
_CALLS = {
    **dict.fromkeys(
        ("builtins.eval", "builtins.exec", "builtins.compile"),
        "runs code that is not in sight",
    ),
    "IPython.core.interactiveshell.get_ipython": "uses a magic or the shell",
    "ipykernel.kernelbase.": "asks for input",
    **dict.fromkeys(
        ("matplotlib.", "seaborn."), "draws with matplotlib, which keeps its figures"
    ),
    "torch.distributed.": "works with other processes",
    **dict.fromkeys(
        (
            *("torch.jit._serialization.save", "torch.jit._script.save", "torch.onnx."),
            *("torch.utils.tensorboard.", "tensorboardX.", "safetensors.", "h5py."),
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            *("wandb.", "mlflow.", "requests.", "httpx.", "aiohttp.", "http.client."),
            *("urllib.request.", "urllib3.", "socket.", "smtplib.", "ftplib."),
            *("boto3.", "botocore.", "huggingface_hub."),
        ),
        _NETWORK,
    ),
    **dict.fromkeys(("signal.", "_signal."), _PROCESS),
}
#: what anybody calls
_BY_ANYBODY = {
    "_open_zipfile_writer": _FILES,
    **dict.fromkeys(("to_parquet", "to_hdf", "to_feather", "to_sql"), _FILES),
    **dict.fromkeys(("save_pretrained", "save_file"), _FILES),
    "push_to_hub": _NETWORK,
    **dict.fromkeys(("start_new_thread", "start_joinable_thread"), "starts threads"),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: compilers keep what was compiled, and nothing else, in files and by processes;
#: loaders end their own workers
_EXEMPT = (
    *("torch._inductor", "torch._dynamo", "torch.utils.cpp_extension", "triton."),
    *("importlib", "numba.", "cupy.", "torch._functorch", "torch.utils.data"),
)
_STANDARD_LIBRARY = inspect.__file__.removesuffix("inspect.py")
_WARPBOOK = __file__.rpartition("kernel")[0]
#: what these set is put back after each run
_KEPT_SETTINGS = ("torch.backends", "torch.cuda", "torch.mps")


class _Stopped(BaseException):
    """Ends the run past handlers of `Exception`; `guarded` tells the reason."""


class _Watching(threading.local):
    """Whether this thread runs a cell on copies, and why that was stopped."""

    is_on = False
    stopped: NotIsolated | None = None


_watching = _Watching()


@functools.cache
def _add_hook() -> None:
    sys.addaudithook(_heard)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Raise `NotIsolated` where this thread does what can't be undone."""
    _add_hook()
    before, has_gc = sys.getprofile(), gc.isenabled()
    # it would run what others have left to do, such as to remove a file
    gc.disable()
    _watching.is_on = True
    sys.setprofile(_called)
    try:
        yield
    except BaseException:
        if _watching.stopped is None:
            raise
    finally:
        sys.setprofile(before)
        _watching.is_on = False
        if has_gc:
            gc.enable()
    # also where the cell has handled it
    stopped, _watching.stopped = _watching.stopped, None
    if stopped is not None:
        try:
            raise stopped
        finally:
            # its traceback holds what the cell made, and is not to hold itself
            del stopped


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching.is_on:
        return
    reason = _EVENTS.get(event)
    if event == "open" and _is_for_writing(*arguments[:3]):
        reason = "opens a file for writing"
    if reason is not None:
        _stop(reason, sys._getframe(1))


def _is_for_writing(path: Any, mode: Any, flags: Any) -> bool:
    if path == os.devnull:
        return False
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & _WRITING)


def _called(frame: FrameType, event: str, function: Any) -> None:
    """Look at a call, as a profiler does."""
    reason = None
    if event == "call":
        name = frame.f_code.co_name
        if name in _BY_ANYBODY and not is_own_code(frame.f_code.co_filename):
            reason = _BY_ANYBODY[name]
        elif frame.f_back is not None and is_own_code(frame.f_back.f_code.co_filename):
            reason = _reason(f"{frame.f_globals.get('__name__')}.{name}")
    elif event == "c_call":
        name = getattr(function, "__name__", "")
        reason = _BY_ANYBODY.get(name)
        if reason is None and is_own_code(frame.f_code.co_filename):
            reason = _reason(f"{getattr(function, '__module__', None)}.{name}")
    if reason is not None:
        _stop(reason, frame)


@functools.lru_cache(10_000)
def _reason(name: str) -> str | None:
    return next((_CALLS[begin] for begin in _CALLS if name.startswith(begin)), None)


def _stop(reason: str, frame: FrameType | None) -> None:
    """Stop the run, unless a compiler or a loader does it for itself.

    Raises:
        _Stopped: it is stopped.
    """
    while frame is not None and not is_own_code(frame.f_code.co_filename):
        if str(frame.f_globals.get("__name__")).startswith(_EXEMPT):
            return
        frame = frame.f_back
    if _watching.stopped is None:
        place = () if frame is None else _place(frame.f_code, frame.f_lineno)
        _watching.stopped = NotIsolated(reason, *place)
    raise _Stopped


def _place(code: CodeType, line: int) -> tuple[int, str]:
    """Return a line of the cell, or one of a function and the function's name."""
    if code.co_name == "<module>":
        return line, ""
    name = getattr(code, "co_qualname", code.co_name)
    return line - code.co_firstlineno + 1, name.rpartition("<locals>.")[2]


@functools.lru_cache(10_000)
def is_own_code(path: str) -> bool:
    """Return whether a file is the person's, and no part of Python or a package."""
    return not (
        "site-packages" in path
        or "dist-packages" in path
        or path.startswith((_STANDARD_LIBRARY, _WARPBOOK, "<frozen"))
    )


def check_stores(code: CodeType, known: Mapping[str, Any]) -> None:
    """Look whether code sets what belongs to a module or to a library's class.

    Args:
        code: of a cell, or of a function of the person's.
        known: the values of global names.

    Raises:
        NotIsolated: it does.
    """
    lines, line, owner = dict(dis.findlinestarts(code)), 1, None
    for step in dis.get_instructions(code):
        line = lines.get(step.offset) or line
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            owner = known.get(step.argval)
        elif step.opname == "LOAD_ATTR" and isinstance(owner, ModuleType):
            owner = vars(owner).get(step.argval)
        else:
            is_store = step.opname in ("STORE_ATTR", "DELETE_ATTR")
            if is_store and _is_foreign(owner):
                reason = f"sets an attribute of {owner.__name__}"
                raise NotIsolated(reason, *_place(code, line))
            owner = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            check_stores(constant, known)


def _is_foreign(owner: Any) -> TypeGuard[type | ModuleType]:
    if isinstance(owner, type):
        return owner.__module__ != "__main__"
    is_module = isinstance(owner, ModuleType)
    return is_module and not owner.__name__.startswith(_KEPT_SETTINGS)
