"""A lab's own Python: how values are drawn, what is right, and how far it may be off.

That of the catalogue is imported. Anybody else's runs in the jail, and gives back data.
"""

from __future__ import annotations

import ast
import importlib.util
import threading
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from warpbook_labs.lab.files import UnfitFile, read_file
from warpbook_labs.lab.loaded import FUNCTIONS, Cases
from warpbook_labs.lab.python.questions import Question
from warpbook_labs.lab.python.syntax import parse
from warpbook_labs.sandbox.kept import KeptProcess, KeptProcessError
from warpbook_labs.sandbox.values import UnfitValue, decode, encode
from warpbook_labs.sandbox.work import Limits

#: of all calls together
LIMITS = Limits(
    processor_s=600, asleep_s=120.0, memory_bytes=8 << 30, output_bytes=2 << 30
)


class LabPythonError(Exception):
    """The lab's own Python could not be run, or gave back what is no plain data."""


class LabProcess:
    """One source, and the process that runs it."""

    def __init__(self, file_name: str, source: str, limits: Limits = LIMITS) -> None:
        """Keep the source; nothing is started before the first call."""
        first = encode([file_name, source])
        self._process = KeptProcess(
            "warpbook_labs.lab.python.lab_python", first, limits
        )
        self._lock = threading.Lock()

    def call(self, function: str, *arguments: Any) -> Any:
        """Call one of its functions.

        Args:
            arguments: plain data, arrays of numbers, generators of random numbers.

        Raises:
            Exception: of the type's name and with the words of what the function
                raised.
            LabPythonError: it took too long, ended, or gave back no plain data.
        """
        request = encode([function, list(arguments)])
        with self._lock:
            try:
                content = self._process.exchange(request)
            except KeptProcessError as problem:
                raise LabPythonError(str(problem)) from None
        try:
            status, *results = decode(content)
        except (UnfitValue, ValueError, TypeError):
            raise LabPythonError("It returned malformed data.") from None
        if status == "done" and len(results) == 1:
            return results[0]
        kind, words = [*map(str, results), "", ""][:2]
        name = kind if kind.isidentifier() else "Exception"
        raise type(name[:100], (Exception,), {})(words)


_FUNCTIONS, _PLAN_FUNCTIONS = FUNCTIONS
_DIALOGUE = "advance"


class BadPython(Exception):
    """A lab's own Python can't be used; the message names the file and says why."""


def imported_cases(file: Path, functions: tuple[str, ...]) -> Cases:
    """Import `cases.py` of a lab that is warpbook's own, or the grader's.

    Raises:
        BadPython: it can't be imported, or a function is missing.
    """
    _source(file, functions)
    spec = importlib.util.spec_from_file_location(
        f"warpbook_lab_{file.parent.name}", file
    )
    if spec is None or spec.loader is None:
        raise BadPython(f"{file}: Python can't load it.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # noqa: BLE001 - whatever it is, the lab is bad
        raise BadPython(f"{file}: {type(problem).__name__}: {problem}") from None
    names = (*_FUNCTIONS, *_PLAN_FUNCTIONS, _DIALOGUE)
    absent = partial(_absent, file)
    return Cases(**{name: getattr(module, name, absent) for name in names})


def jailed_cases(file: Path, functions: tuple[str, ...]) -> Cases:
    """Give the functions of somebody's `cases.py`, each of which runs in the jail.

    Raises:
        BadPython: it is no Python, or a function is missing.
    """
    # the server loads this file, and no NumPy

    process = LabProcess(file.name, _source(file, functions))

    def questions(dice: Any) -> list[Question]:
        drawn = process.call("questions", dice)
        return msgspec.convert(drawn, list[Question])

    def judge(question: Question, answer: Any) -> str:
        return str(process.call("judge", question, answer))

    absent = partial(_absent, file)
    if functions == _PLAN_FUNCTIONS:
        advance = partial(process.call, _DIALOGUE)
        return Cases(absent, absent, absent, questions, judge, advance)
    inputs, expected, tolerance = (partial(process.call, name) for name in _FUNCTIONS)
    return Cases(inputs, expected, tolerance, absent, absent, absent)


def _source(file: Path, functions: tuple[str, ...]) -> str:
    """Read the file, and refuse it where it does not define what it must."""
    try:
        source = read_file(file)
        if not source.strip():
            raise BadPython(f"{file}: this file is empty.")
        defined = _defined(parse(source))
    except UnfitFile as problem:
        raise BadPython(str(problem)) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise BadPython(f"{file}: {type(problem).__name__}: {problem}") from None
    for name in functions:
        if name not in defined:
            raise BadPython(f"{file}: it has no function {name}().")
    return source


def _defined(module: ast.Module) -> set[str]:
    """Name what a module defines or imports, whatever runs."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _absent(file: Path, *_: Any) -> Any:
    raise BadPython(
        f"{file}: this function is missing, or its language has no use for it."
    )
