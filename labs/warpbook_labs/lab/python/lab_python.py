"""The process in the jail that runs a foreign lab's own Python, call after call.

    python -m warpbook_labs.lab.python.lab_python LIMITS EMPTY_FOLDER

The first message is the source, each later one a call; each is answered, in `values`.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from warpbook_labs.lab.python.questions import Question
from warpbook_labs.sandbox.confinement import confine
from warpbook_labs.sandbox.values import UnfitValue, decode, encode
from warpbook_labs.sandbox.work import Limits, read_message, write_message

#: of what is installed, beside Python's own modules and ours
_PACKAGES = ("msgspec", "numpy", "torch")
_OURS = ("warpbook_labs", "warpbook_monitors")
#: of Python's own: they do something when they are imported
_NEVER = ("antigravity", "idlelib", "this", "turtle", "turtledemo")
#: NumPy loads them when they are first used
_LATE = ("numpy.fft", "numpy.linalg", "numpy.random")
_MOST_WORDS = 2000


def main() -> None:
    """Be given a source, be shut in, run it, and answer calls until the end."""
    limits = msgspec.json.decode(sys.argv[1], type=Limits)
    # what is printed must not get into the answers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    first = read_message(requests, limits.output_bytes)
    if first is None:
        return
    file_name, source = decode(first)
    for name in (*_LATE, *_imported(source)):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    confine(limits, Path(sys.argv[2]))
    module = ModuleType("cases")
    sys.modules["cases"] = module
    problem: BaseException | None = None
    try:
        exec(compile(source, file_name, "exec", dont_inherit=True), module.__dict__)
    except BaseException as raised:  # noqa: BLE001 - whatever the lab's code does
        problem = raised
    while (request := read_message(requests, limits.output_bytes)) is not None:
        answer = _failed(problem) if problem is not None else _done(module, request)
        write_message(answers, answer)
    os._exit(0)


def _done(module: ModuleType, request: bytes) -> bytes:
    try:
        function, arguments = decode(request)
        called = getattr(module, function)
        if function in ("judge", "advance"):
            arguments[0] = Question(**arguments[0])
        return encode(["done", called(*arguments)])
    except BaseException as problem:  # noqa: BLE001 - whatever the lab's code does
        return _failed(problem)


def _failed(problem: BaseException) -> bytes:
    words = ""
    with contextlib.suppress(BaseException):
        words = str(problem)[:_MOST_WORDS]
    kind = "TypeError" if isinstance(problem, UnfitValue) else type(problem).__name__
    return encode(["raised", str(kind), words.encode(errors="replace").decode()])


def _imported(source: str) -> Iterator[str]:
    """Name what a source imports, as far as it may: no file can be opened later."""
    try:
        nodes: list[Any] = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [node.module, *parts]
        for name in names:
            root = name.partition(".")[0]
            is_pythons = root in sys.stdlib_module_names and root not in _NEVER
            if is_pythons or root in (*_PACKAGES, *_OURS):
                yield name


if __name__ == "__main__":
    main()
