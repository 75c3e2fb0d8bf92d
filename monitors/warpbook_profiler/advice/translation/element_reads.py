"""Elements of a tensor that turns read as numbers: a list of them, copied once before.

The tensor stays what it is, and so does each name; only the reads take the list's.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    CellCode,
    last_name,
    names_in,
    stored_names,
    walk,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.source_text import MOST_CHARACTERS
from warpbook_profiler.advice.code.value_flow import FUNCTIONS, LOOPS, ValueFlow

#: code that reads more elements is let be, for the time that it takes to look
_MOST_READS = 64
_MADE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OF_PYTHON = (*_MADE, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.Constant)
#: they take rows or more, or are keys
_NO_PLACES = (ast.Slice, ast.Starred, ast.Compare, ast.List, ast.Tuple, ast.JoinedStr)
_LEAVES = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
#: methods of what is no tensor
_OF_HOST = frozenset("append extend insert items keys values get update".split())
_HOST_CALLS = frozenset(
    "list dict set tuple sorted range zip map defaultdict tolist split".split()
)
#: methods that change no tensor, and modules whose functions change none
_CALM = frozenset(
    "item tolist cpu detach numpy size dim numel sum mean max min abs any all norm "
    "argmax argmin argsort sort float int bool long double half to view reshape "
    "squeeze unsqueeze flatten exp log sqrt square clone sigmoid softmax tanh t".split()
).union(dir(list), dir(dict), dir(set), dir(str))
_MODULES = frozenset("torch math np numpy F random".split())
#: functions that change what they are given, or run other code
_CHANGING = frozenset(
    "at copyto eval exec fill_diagonal next place put put_along_axis putmask setattr "
    "shuffle".split()
)


class _Read(NamedTuple):
    #: what a number stands for afterwards
    node: ast.expr
    name: str
    places: list[ast.expr]
    #: it asks a tensor, and nothing else has the method
    is_sure: bool


def listed_elements(code: CellCode) -> Iterator[str]:
    """Write reads of elements as those of a list; first all, then the surer ones."""
    if len(code.source) > MOST_CHARACTERS:
        return
    found = [one for one in map(_read, walk(code.tree)) if one is not None]
    if len(found) > _MOST_READS:
        return
    sure = [one for one in found if one.is_sure]
    for reads in (found, sure) if len(sure) < len(found) else (found,):
        if reads and (text := _Elements(code).written(reads)):
            yield text


class _Elements:
    def __init__(self, code: CellCode) -> None:
        self._code, self._edit, self._flow = code, SourceEdit(code), ValueFlow(code)
        #: names of lists, by where they are made, of what, and how deep they are
        self._lists: dict[tuple[ast.AST, str, int], str] = {}
        self._functions = [
            one for one in walk(code.tree) if isinstance(one, ast.FunctionDef)
        ]
        self._defined = {one.name for one in self._functions}
        self._kept: dict[tuple[str, ast.AST], bool] = {}
        self._reads: list[_Read] = []

    def written(self, reads: list[_Read]) -> str:
        new: dict[int, ast.AST] = {}
        self._reads = reads
        # what is within another one comes first
        for read in reversed(reads):
            made = self._list(read)
            if made:
                value: ast.expr = ast.Name(made, ast.Load())
                for place in read.places:
                    value = ast.Subscript(value, copy.deepcopy(place, new), ast.Load())
                new[id(read.node)] = value
        done = set[ast.AST]()
        for node in walk(self._code.tree):
            is_read = id(node) in new or (
                isinstance(node, ast.JoinedStr)
                and any(id(part) in new for part in walk(node))
            )
            if is_read and isinstance(node, ast.expr) and node not in done:
                done.update(walk(node))
                self._edit.replace(node, ast.unparse(copy.deepcopy(node, new)))
        return self._edit.source() if new else ""

    def _list(self, read: _Read) -> str:
        """Return the name of the list that has a number; empty without one."""
        loop: ast.AST | None = None
        inner: ast.AST = read.node
        for above in self._flow.around(read.node):
            if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
                break
            is_loop = isinstance(above, LOOPS) and inner is not _over(above)
            if is_loop and isinstance(above, ast.For):
                if item := self._item(above, above.target, above.iter, read):
                    return item
            if is_loop or isinstance(above, _MADE):
                if not self._is_kept(read.name, above) or self._is_later(above):
                    break
                loop = above
            inner = above
        if loop is None or not read.places or self._is_of_host(read.name):
            return ""
        statement = self._flow.statement(loop)
        if statement is None or not isinstance(statement, (*SIMPLE, *LOOPS)):
            return ""
        if loop is not statement:
            for above in self._flow.around(loop):
                if above is statement:
                    break
                if isinstance(above, (*_MADE, ast.Lambda)):
                    return ""
        if not any(
            (one.name, len(one.places)) == (read.name, len(read.places))
            and self._is_always(one.node, statement)
            for one in self._reads
        ):
            # a condition may be what makes it possible
            return ""
        key = statement, read.name, len(read.places)
        if key not in self._lists:
            self._lists[key] = self._edit.free_name(f"{read.name}_numbers")
            self._edit.before(
                statement, f"{self._lists[key]} = {_listed(read.name, key[2])}"
            )
        return self._lists[key]

    def _is_always(self, node: ast.AST, statement: ast.AST) -> bool:
        """Tell whether a part of a statement runs in each turn of its loops."""
        inner = node
        for above in self._flow.around(node):
            match above:
                case ast.If(test=test) | ast.IfExp(test=test) if inner is not test:
                    return False
                case ast.BoolOp(values=[first, *_]) if inner is not first:
                    return False
                case ast.comprehension(ifs=[_, *later]) if inner in later:
                    return False
                case _ if isinstance(above, ast.Try | ast.match_case):
                    return False
                case _ if isinstance(above, _MADE) and not isinstance(
                    inner, ast.comprehension
                ):
                    if any(one.ifs for one in above.generators):
                        return False
            if above is statement:
                return True
            inner = above
        return False

    def _item(
        self, loop: ast.For, target: ast.expr, over: ast.expr, read: _Read
    ) -> str:
        """Have a loop go over numbers, too, if it gives the name that is read."""
        match target, over:
            case ast.Name(id=name), ast.Name(id=rows) if name == read.name:
                pass
            case (
                ast.Tuple(elts=[_, one]),
                ast.Call(func=ast.Name(id="enumerate"), args=[given, *_]),
            ):
                return self._item(loop, one, given, read)
            case ast.Tuple(elts=names), ast.Call(
                func=ast.Name(id="zip"), args=args
            ) if len(names) == len(args):
                pairs = zip(names, args, strict=True)
                found = (self._item(loop, one, given, read) for one, given in pairs)
                return next(filter(None, found), "")
            case _:
                return ""
        key = target, name, len(read.places) + 1
        if key in self._lists:
            return self._lists[key]
        is_other = any(one[0] is target for one in self._lists)
        changes = any(self._flow.is_changed_in(name, one) for one in loop.body)
        if is_other or changes or self._is_of_host(rows):
            return ""
        if not self._is_kept(rows, loop):
            return ""
        number = self._lists[key] = self._edit.free_name(f"{name}_number")
        pair = f"{name}, {number}"
        self._edit.replace(target, pair if target is loop.target else f"({pair})")
        self._edit.replace(over, f"zip({rows}, {_listed(rows, key[2])})")
        return number

    def _is_later(self, loop: ast.AST) -> bool:
        """Tell whether code may run after the statement that it is in."""
        is_lazy = isinstance(loop, ast.GeneratorExp)
        return is_lazy and not isinstance(self._flow.parent(loop), ast.Call)

    def _is_kept(self, name: str, loop: ast.AST) -> bool:
        """Tell whether turns, and what they call, leave a tensor as it is."""
        if (name, loop) not in self._kept:
            self._kept[name, loop] = self._leaves(name, loop)
        return self._kept[name, loop]

    def _leaves(self, name: str, loop: ast.AST) -> bool:
        flow = self._flow
        own = flow.roots(ast.Name(name, ast.Load()))
        for node in walk(self._code.tree):
            if isinstance(node, ast.For | ast.comprehension):
                # items look at the same memory
                if names_in(node.iter) & own:
                    if any(map(flow.is_written, stored_names(node.target))):
                        return False
        parts = [loop, *self._called(loop)]
        if any(flow.is_changed_in(one, part) for one in own for part in parts):
            return False
        return all(self._is_calm(node) for part in parts for node in walk(part))

    def _called(self, loop: ast.AST) -> list[ast.FunctionDef]:
        """Return the functions of the cell that code names, and those that they do."""
        names, before = names_in(loop), -1
        while len(names) != before:
            before = len(names)
            found = [one for one in self._functions if one.name in names]
            names |= {name for one in found for name in names_in(one)}
        return found

    def _is_calm(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name)):
                is_known = hasattr(builtins, name) and name not in _CHANGING
                return name in self._defined or is_known
            case ast.Call(func=ast.Attribute(attr=name, value=value), args=args):
                root = ast.unparse(value).split(".")[0]
                is_in_place = name.endswith("_") or name in _CHANGING
                if ast.unparse(value) in ("np", "numpy"):
                    # what comes after the operands is written
                    count = 3 if name in ("where", "clip") else 2
                    taken = getattr(getattr(np, name, None), "nin", count)
                    is_in_place |= len(args) > taken
                return not is_in_place and (name in _CALM or root in _MODULES)
        return not isinstance(node, (ast.Call, *_LEAVES))

    def _is_of_host(self, name: str) -> bool:
        """Tell whether a name is one of lists, dictionaries or numbers of Python."""
        for one in self._flow.reads(name):
            above = self._flow.parent(one)
            if isinstance(above, ast.Attribute) and above.attr in _OF_HOST:
                return True
        for setting in self._flow.settings(name):
            match setting:
                case ast.Assign(targets=[ast.Name()], value=ast.Call(func=function)):
                    if last_name(function) in _HOST_CALLS:
                        return True
                case ast.Assign(targets=[ast.Name()], value=value):
                    if isinstance(value, _OF_PYTHON):
                        return True
        return False


def _read(node: ast.AST) -> _Read | None:
    """Return what code reads of an element, or of an item, as a number."""
    match node:
        case ast.Call(func=ast.Attribute(attr="item", value=value), args=[]):
            replaced: ast.expr = node
        case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[value]):
            replaced = value
        case ast.FormattedValue(value=value, conversion=-1) if node.format_spec:
            replaced = value
        case _:
            return None
    while True:
        match value:
            case ast.Call(
                func=ast.Attribute(attr="cpu" | "detach", value=inner), args=[]
            ):
                value = inner
            case _:
                break
    places: list[ast.expr] = []
    while isinstance(value, ast.Subscript):
        place = value.slice
        places[:0] = place.elts if isinstance(place, ast.Tuple) else [place]
        value = value.value
    if not isinstance(value, ast.Name) or not all(map(_is_one, places)):
        return None
    return _Read(replaced, value.id, places, replaced is node)


def _over(loop: ast.AST) -> ast.expr | None:
    return loop.iter if isinstance(loop, ast.For) else None


def _is_one(place: ast.expr) -> bool:
    if isinstance(place, ast.Constant):
        return type(place.value) is int
    return not isinstance(place, _NO_PLACES)


def _listed(name: str, depth: int) -> str:
    """Write a tensor's numbers in lists of lists; axes of length one may follow."""
    return f"{name}.flatten({depth - 1 or ''}).tolist()"
