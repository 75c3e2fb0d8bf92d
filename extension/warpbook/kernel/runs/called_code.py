"""The sources of the person's functions and methods that a cell reaches."""

from __future__ import annotations

import ast
import inspect
import textwrap
import tokenize
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch.utils import _contextlib

from warpbook_profiler.advice.code.cell_code import CellCode, bound_names, names_in

#: in all, and of one list or module
_MOST_SOURCES, _MOST_ITEMS = 30, 500
_NOT_PLAIN = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
#: special methods that a cell reaches by its own syntax, without their names
_BY_SYNTAX = frozenset("__call__ __iter__ __next__ __getitem__".split())
#: decorators of torch that mean the same around a copy
_MODES = ("torch.no_grad()", "torch.inference_mode()")


def called_code(source: str, namespace: dict[str, Any]) -> dict[str, str]:
    """Give sources of plain functions by name, and of methods by "Class.method".

    Plain is what means the same under another name: without a closure, a decorator but
    one of torch's without gradients, a default that is computed, or a call of itself.
    Beside methods, `name: (Class, Parent)` says of which classes an object is.

    Args:
        source: of the cell, whose own functions are left out.
        namespace: the person's.
    """
    tree, found = CellCode(source).tree, dict[str, str]()
    own, seen = bound_names(tree), set[str]()
    waiting = deque(sorted(names_in(tree) - own))
    while waiting and len(found) < _MOST_SOURCES:
        name = waiting.popleft()
        if name in seen or name in own or name not in namespace:
            continue
        seen.add(name)
        for path, function in _functions(name, namespace):
            text = _plain_source(path, function, namespace)
            if path not in found and text is not None:
                found[path] = text
                waiting.extend(sorted(names_in(ast.parse(text))))
    if any("." in path for path in found):
        found |= dict(_kinds(names_in(tree) - own, namespace))
    return found


def _kinds(
    names: Iterable[str], namespace: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Give the classes of objects, by their name."""
    known = (name for name in sorted(names) if name in namespace)
    for name in islice(known, _MOST_ITEMS):
        if not isinstance(namespace[name], FunctionType | ModuleType | type):
            kinds = [one.__name__ for one in type(namespace[name]).__mro__]
            if all(one.isidentifier() for one in kinds):
                yield name, f"{name}: ({', '.join(kinds)},)"


def _functions(
    name: str, namespace: dict[str, Any]
) -> Iterator[tuple[str, FunctionType]]:
    value = namespace[name]
    if isinstance(value, FunctionType):
        if value.__name__ == name:
            yield name, value
        return
    # of a class the cell makes objects
    kinds = [value] if isinstance(value, type) else map(type, _held(value, namespace))
    for kind in dict.fromkeys(kinds):
        for method in dir(kind):
            # the first has it for the object, whatever others have
            owners = (one for one in kind.__mro__ if method in vars(one))
            owner = next(owners, object)
            function = vars(owner).get(method)
            is_known = namespace.get(owner.__name__) is owner
            is_own = method in _BY_SYNTAX or method[:2] != "__"
            if is_known and isinstance(function, FunctionType) and is_own:
                yield f"{owner.__name__}.{method}", function


def _held(value: Any, namespace: Mapping[str, Any]) -> Iterator[Any]:
    """Give a value, and what it holds: a list, a module, an object of the person's."""
    waiting, seen = deque([value]), set[int]()
    while waiting and len(seen) < _MOST_ITEMS:
        one = waiting.popleft()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        items: Iterable[Any] = ()
        if isinstance(one, torch.nn.Module):
            items = one.modules()
        elif type(one) in (list, tuple):
            items = one
        elif type(one) is dict:
            items = one.values()
        elif namespace.get(type(one).__name__) is type(one):
            items = getattr(one, "__dict__", {}).values()
        waiting.extend(islice(items, _MOST_ITEMS))


def _plain_source(
    path: str, function: FunctionType, namespace: Mapping[str, Any]
) -> str | None:
    """Give a function's source; None where a copy of it may be another function."""
    is_decorated = function.__globals__ is vars(_contextlib)
    function = getattr(function, "__wrapped__", function) if is_decorated else function
    code = function.__code__
    if function.__globals__ is not namespace or function.__closure__:
        return None
    if code.co_flags & _NOT_PLAIN or hasattr(function, "__wrapped__"):
        return None
    try:
        text = textwrap.dedent(inspect.getsource(function))
        made = compile(text, code.co_filename, "exec", dont_inherit=True)
        (definition,) = ast.parse(text).body
    except (OSError, SyntaxError, TypeError, ValueError, tokenize.TokenError):
        return None
    if not isinstance(definition, ast.FunctionDef):
        return None
    name, decorators = definition.name, map(ast.unparse, definition.decorator_list)
    if [one in _MODES for one in decorators] != [True] * is_decorated:
        return None
    bodies = [one for one in made.co_consts if isinstance(one, CodeType)]
    is_same = name == function.__name__ and any(
        _contents(one) == _contents(code) for one in bodies
    )
    inside = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    hidden = any(
        isinstance(node, ast.Attribute) and node.attr.startswith("__")
        for node in ast.walk(definition)
    )
    is_plain = _has_same_defaults(definition.args, function, namespace)
    # within a method its own name is another variable
    is_plain &= ("." in path or name not in inside) and not hidden
    return text if is_same and is_plain else None


def _has_same_defaults(
    arguments: ast.arguments, function: FunctionType, namespace: Mapping[str, Any]
) -> bool:
    """Tell whether a copy that is made now has a function's own defaults."""
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    given = [
        *zip(arguments.defaults, function.__defaults__ or (), strict=False),
        *(
            (node, (function.__kwdefaults__ or {}).get(one.arg))
            for one, node in keywords
            if node is not None
        ),
    ]
    return all(_is_default(node, value, namespace) for node, value in given)


def _is_default(node: ast.expr, value: Any, namespace: Mapping[str, Any]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in namespace and namespace[name] is value
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            # of a module, which computes nothing for its name
            module = namespace.get(name)
            return isinstance(module, ModuleType) and vars(module).get(attr) is value
        case ast.List() | ast.Dict() | ast.Set():
            return False
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def _contents(code: CodeType) -> tuple[object, ...]:
    """Give what tells code apart from that of a source that was edited since."""
    values = [
        _contents(one) if isinstance(one, CodeType) else (type(one), one)
        for one in code.co_consts
    ]
    return code.co_name, code.co_names, code.co_varnames, values
