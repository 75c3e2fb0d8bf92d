"""Functions, modules and methods of other cells, which a cell calls as compiled.

Their names stay what they are: the cell calls what was compiled by a name of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, bound_names
from warpbook_profiler.advice.code.live_modules import LiveModules
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import opaque_calls

_COMPILING = '''\
def {compiled}(called):
    """Return each function or module that something holds as compiled."""
    left, made = [called], {{}}
    while left:
        one = left.pop()
        if isinstance(one, (list, tuple)):
            left += one
        elif isinstance(one, dict):
            left += one.values()
        elif isinstance(one, {torch}.nn.Module):
            made.update((part, {torch}.compile(part)) for part in one.modules())
        elif callable(one):
            made[one] = {torch}.compile(one)
    return made
'''


class _Called(NamedTuple):
    """A name of another cell or a method of it, and what is called of it."""

    name: str
    #: it is called itself, not one of several that it holds
    is_whole: bool


def compiled_calls(code: CellCode) -> Iterator[str]:
    """Write the cell with all that it calls from elsewhere compiled, then one each."""
    live, own = LiveModules(code), bound_names(code.tree)
    called: dict[_Called, list[ast.expr]] = {}
    for call in opaque_calls(code.tree):
        function = call.func
        names = live.roots(function) & set(live.names) - own
        if isinstance(function, ast.Name) and len(names) == 1:
            (name,) = names
            key = _Called(name, function.id == name)
            called.setdefault(key, []).append(function)
    for some in dict.fromkeys([tuple(called), *((one,) for one in called)]):
        if some and (text := _written(code, some, called)):
            yield text


def compiled_methods(code: CellCode, methods: Collection[str]) -> Iterator[str]:
    """Write the cell with methods of other cells' objects compiled.

    Args:
        code: the cell.
        methods: names of those that other cells define.
    """
    own, called = bound_names(code.tree), dict[_Called, list[ast.expr]]()
    for call in opaque_calls(code.tree):
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr in methods:
            text = ast.unparse(function)
            # `simulation.fluid.step`, of which no part is the cell's
            if text.replace(".", "").isidentifier() and text.split(".")[0] not in own:
                called.setdefault(_Called(text, True), []).append(function)
    if called and (text := _written(code, [*called], called)):
        yield text


def _written(
    code: CellCode, some: Sequence[_Called], calls: dict[_Called, list[ast.expr]]
) -> str:
    edit, lines, compiled = SourceEdit(code), list[str](), ""
    for one in some:
        name = one.name.replace(".", "_")
        instead, function = edit.free_name(f"{name}_compiled"), "torch.compile"
        edit.module("torch")
        if not one.is_whole:
            compiled = compiled or edit.free_name("compiled")
            function = compiled
        lines.append(f"{instead} = {function}({one.name})")
        for call in calls[one]:
            text = ast.unparse(call)
            entry = instead if one.is_whole else f"{instead}.get({text}, {text})"
            edit.replace(call, entry)
    if compiled:
        lines.insert(0, _COMPILING.format(compiled=compiled, torch="torch"))
    edit.at_start("\n".join(lines))
    return edit.source()
