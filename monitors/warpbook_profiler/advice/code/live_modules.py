"""What may be a module among the names of a cell, and where an edit can take it.

A source does not tell modules from functions or lists of them: an edit asks when it
runs, so that it finds those of other cells, too.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode, names_in, stored_names
from warpbook_profiler.advice.code.containers import Containers
from warpbook_profiler.advice.code.read_code import times_set
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import MODULES, opaque_calls
from warpbook_profiler.advice.code.value_flow import ValueFlow

#: methods of what is no module, or that do not compute
_OTHERS = frozenset(
    "backward grad step zero_grad append extend insert pop popleft update setdefault "
    "items keys values named_children children modules parameters format join split "
    "split_with_sizes next record_stream wait_stream manual_seed".split()
)
#: methods that only set a module up
_SET_UP = frozenset(
    "eval train to cuda half float bfloat16 requires_grad_ load_state_dict".split()
)
_BUILTINS = frozenset(dir(builtins))
_GOES_OVER = frozenset("enumerate zip reversed list tuple iter map tqdm".split())
_MOST_NAMES = 20


class LiveModules:
    """Names that modules are called by, alone or as parts of others."""

    def __init__(self, code: CellCode) -> None:
        """Find what is called and is no function of the cell's own."""
        tree = self._tree = code.tree
        self._flow = ValueFlow(code)
        self._made = {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        imported = {
            (alias.asname or alias.name).split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        self._none = MODULES | _BUILTINS | imported | self._made
        found = [name for call in opaque_calls(tree) for name in self._of_call(call)]
        self.names = list(dict.fromkeys(found))[:_MOST_NAMES]

    def roots(self, node: ast.expr) -> set[str]:
        """Give the names that a value is, or is a part of."""
        found, left, seen = set[str](), [node], set[str]()
        while left:
            match left.pop():
                case ast.Attribute(value=value) | ast.Subscript(value=value):
                    left.append(value)
                case ast.Call(func=ast.Name(id=name), args=given) if name in _GOES_OVER:
                    left += given
                case ast.Call(func=ast.Attribute(value=value), args=[]):
                    left.append(value)
                case ast.Name(id=name) as read if name not in seen:
                    seen.add(name)
                    over = list(self._gone_over(name))
                    left += over
                    if self._flow.takes(name):
                        name = Containers(self._flow).holding(read)
                    if name and not over and name not in self._none:
                        found.add(name)
        return found

    def ready(self, name: str) -> ast.stmt | None:
        """Give the statement after which a name holds its module, set up.

        Returns:
            None where it does before the cell.

        Raises:
            LookupError: that is no one place.
        """
        last, is_used = None, False
        for statement in self._tree.body:
            is_of_it = name in names_in(statement)
            if _sets_up(statement, name):
                if is_used:
                    raise LookupError
                last = statement
            elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                # a function of the cell may call it
                is_used |= is_of_it or bool(self._made & names_in(statement))
        sets = times_set(self._tree, name)
        if sets > 1 or (sets and last is None):
            raise LookupError
        return last

    def reads(self, name: str) -> list[ast.Name]:
        """Give where a name is read, but to set its module up.

        Raises:
            LookupError: where a function sets it up.
        """
        others = [
            *(one for one in self._tree.body if _sets_up(one, name)),
            # whose argument has that name
            *(one for one in ast.walk(self._tree) if _takes(one, name)),
        ]
        inside = {part for one in others for part in ast.walk(one)}
        found = []
        for node in ast.walk(self._tree):
            match node:
                case ast.Attribute(attr=attr, value=ast.Name(id=one)) if one == name:
                    if attr in _SET_UP and node not in inside:
                        raise LookupError
                case ast.Name(id=one, ctx=ast.Load()) if one == name:
                    found += [] if node in inside else [node]
        return found

    def _of_call(self, call: ast.Call) -> Iterator[str]:
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr in _OTHERS | _SET_UP:
            return
        if not call.args and not call.keywords:
            # a module is given something
            return
        yield from self.roots(function)

    def _gone_over(self, name: str) -> Iterator[ast.expr]:
        for node in ast.walk(self._tree):
            match node:
                case (
                    ast.For(target=target, iter=over)
                    | ast.comprehension(target=target, iter=over)
                ) if name in stored_names(target):
                    yield over


def _takes(node: ast.AST, name: str) -> bool:
    """Tell whether a function has an argument of a name."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return False
    return any(
        isinstance(one, ast.arg) and one.arg == name for one in ast.walk(node.args)
    )


def _sets_up(statement: ast.stmt, name: str) -> bool:
    """Tell whether a statement makes a module, or only sets one up."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=one)], value=value) if one == name:
            return name not in names_in(value) or _sets_up(ast.Expr(value), name)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr, value=value))) if (
            attr in _SET_UP
        ):
            is_it = isinstance(value, ast.Name) and value.id == name
            return is_it or _sets_up(ast.Expr(value), name)
    return False


def write_after(edit: SourceEdit, place: ast.stmt | None, text: str) -> None:
    """Write lines after a statement, or where the cell begins without one."""
    if place is None:
        edit.at_start(text)
    else:
        edit.after(place, text)
