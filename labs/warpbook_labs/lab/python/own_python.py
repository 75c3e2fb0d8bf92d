"""A lab's own Python: how values are drawn, what is right, and how far it may be off.

That of the catalogue is imported. Anybody else's runs in the jail, and gives back data.
"""

from __future__ import annotations

import ast
import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from warpbook_labs.lab.files import UnfitFile, read_file
from warpbook_labs.lab.loaded import FUNCTIONS, Cases
from warpbook_labs.lab.python.questions import Question
from warpbook_labs.lab.python.syntax import parse

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
    from warpbook_labs.lab.python.lab_process import LabProcess

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
