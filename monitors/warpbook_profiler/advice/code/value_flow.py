"""Where the values of a source go, through names that are set once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from warpbook_profiler.advice.code.cell_code import CellCode, leaves, parts_of, walk
from warpbook_profiler.advice.code.torch_code import opaque_calls

LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: functions of torch that may give the memory of what they are given
VIEWS = frozenset(
    "as_tensor asarray diagonal flatten from_numpy movedim narrow permute ravel real "
    "reshape select squeeze swapaxes t transpose unbind unsqueeze view_as_real".split()
)
#: where functions take whether they work in place
_IN_PLACE = {
    **dict.fromkeys("hardsigmoid hardswish mish relu relu6 selu silu".split(), 1),
    **dict.fromkeys("celu elu leaky_relu".split(), 2),
    **dict.fromkeys("alpha_dropout dropout hardtanh threshold".split(), 3),
}
#: names that a value is followed through, one after the other
_MOST_NAMES = 50
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (
    *FUNCTIONS,
    *(ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


class ValueFlow:
    """Who takes what, in one source."""

    def __init__(self, code: CellCode) -> None:
        """Note each node's parent, and where names are set and read."""
        self._tree = code.tree
        self._parent: dict[ast.AST, ast.AST] = {}
        self._set: defaultdict[str, list[ast.Name]] = defaultdict(list)
        self._read: defaultdict[str, list[ast.Name]] = defaultdict(list)
        self._deleted: defaultdict[str, list[ast.Name]] = defaultdict(list)
        self._arguments: set[str] = set()
        for node in walk(code.tree):
            for child in parts_of(node):
                self._parent[child] = node
            if isinstance(node, ast.Name):
                kinds = {ast.Load: self._read, ast.Store: self._set}
                kinds.get(type(node.ctx), self._deleted)[node.id].append(node)
            elif isinstance(node, ast.arg):
                self._arguments.add(node.arg)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return what a node is a part of."""
        return self._parent.get(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Return all that a node is a part of, the innermost first."""
        above = self._parent.get(node)
        while above is not None:
            yield above
            above = self._parent.get(above)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement that an expression is a part of."""
        above = (one for one in (node, *self.around(node)) if isinstance(one, ast.stmt))
        return next(above, None)

    def loop(self, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
        """Return the innermost loop around a node, in the same function."""
        for above in self.around(node):
            if isinstance(above, LOOPS):
                return above
            if isinstance(above, FUNCTIONS):
                return None
        return None

    def function(self, node: ast.AST) -> ast.AST | None:
        """Return the innermost function around a node."""
        above = (one for one in self.around(node) if isinstance(one, FUNCTIONS))
        return next(above, None)

    def is_repeated(self, node: ast.AST) -> bool:
        """Tell whether a node is in a loop, or in a function, which one may call."""
        return any(isinstance(one, LOOPS + FUNCTIONS) for one in self.around(node))

    def reads(self, name: str) -> list[ast.Name]:
        """Return where a name is read, in the order of the source."""
        return sorted(self._read[name], key=lambda one: (one.lineno, one.col_offset))

    def sets(self, name: str) -> list[ast.Name]:
        """Return where a name is set, in any function."""
        return self._set[name]

    def is_deleted(self, target: ast.Name) -> bool:
        """Tell whether a name is deleted whenever it was set."""
        return any(self._leads(target, one) for one in self._deleted[target.id])

    def _leads(self, first: ast.AST, last: ast.AST) -> bool:
        """Tell whether one statement always comes after another one."""
        begin, end = self.statement(first), self.statement(last)
        block = self._parent.get(begin) if begin is not None else None
        for part in ("body", "orelse", "finalbody"):
            lines = getattr(block, part, None) or []
            if begin in lines and end in lines:
                between = lines[lines.index(begin) : lines.index(end)]
                return bool(between) and not leaves(ast.Module(between, []))
        return False

    def setting(self, name: str) -> ast.Assign | None:
        """Return the only statement that sets a name, and nothing else."""
        above = self._parent[self._set[name][0]] if self.is_set_once(name) else None
        is_plain = isinstance(above, ast.Assign) and len(above.targets) == 1
        return above if is_plain and isinstance(above, ast.Assign) else None

    def settings(self, name: str) -> list[ast.stmt | None]:
        """Return the statements that set a name."""
        return [self.statement(one) for one in self._set[name]]

    def is_set_once(self, name: str) -> bool:
        return len(self._set[name]) == 1 and name not in self._arguments

    def is_set(self, name: str) -> bool:
        return name in self._arguments or bool(self._set.get(name))

    def is_same(self, name: str, first: ast.AST | None, last: ast.AST) -> bool:
        """Tell whether nothing may change a name's value between two nodes.

        Args:
            name: what is read.
            first: where it is read; None for the start of the source.
            last: where it would be read instead.
        """
        begun, end = (0, 0), place_of(last)
        if first is not None:
            begun = _end(self.statement(first) or first)
        inside = set(self.around(first)) if first is not None else set[ast.AST]()
        for above in self.around(last):
            if isinstance(above, LOOPS) and above not in inside:
                end = _end(above)
            if isinstance(above, FUNCTIONS) and above not in inside:
                return not self._changes[name]
        return not any(begun <= place < end for place in self._changes[name])

    def is_changed_in(self, name: str, node: ast.AST) -> bool:
        """Tell whether a node may change a name's value."""
        begun, end = place_of(node), _end(node)
        return any(begun <= place < end for place in self._changes[name])

    @cached_property
    def opaque_calls(self) -> list[ast.Call]:
        """Return the calls that may do any work."""
        return opaque_calls(self._tree)

    def is_written(self, name: str) -> bool:
        """Tell whether code writes to memory that a name may look at.

        What other code does to what it is given is not known here.
        """
        roots, opaque = self.roots(ast.Name(name, ast.Load())), set(self.opaque_calls)
        own = [(one, by) for one, by in self._written if by not in opaque]
        calls = {by for _, by in own if _called(by) in self._functions}
        writing, before = {by for _, by in own} - calls, -1
        while len(writing) != before:
            before = len(writing)
            names = {
                name
                for name, function in self._functions.items()
                if not writing.isdisjoint(walk(function))
            }
            writing |= {one for one in calls if _called(one) in names}
        return any(roots & self.roots(one) for one, by in own if by in writing)

    @cached_property
    def _functions(self) -> dict[str, ast.FunctionDef]:
        return {
            node.name: node
            for node in walk(self._tree)
            if isinstance(node, ast.FunctionDef)
        }

    @cached_property
    def _changes(self) -> defaultdict[str, list[tuple[int, int]]]:
        """Where a name is set, or what it holds may be changed in place."""
        changes: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for node in walk(self._tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                changes[node.id].append(place_of(node))
        for one, node in self._written:
            for name in self.roots(one):
                changes[name].append(place_of(node))
        return changes

    @cached_property
    def _written(self) -> list[tuple[ast.expr, ast.AST]]:
        """What may be changed in place, and by what."""
        written: list[tuple[ast.expr, ast.AST]] = []
        opaque = set(self.opaque_calls)
        for node in walk(self._tree):
            changed: list[ast.expr] = []
            if isinstance(node, ast.Subscript | ast.Attribute):
                changed += [node] if not isinstance(node.ctx, ast.Load) else []
            elif isinstance(node, ast.AugAssign):
                changed.append(node.target)
            elif isinstance(node, ast.Call):
                function = node.func
                given = [*node.args, *(one.value for one in node.keywords)]
                if isinstance(function, ast.Attribute) and function.attr.endswith("_"):
                    changed += [function.value, *given]
                elif node in opaque or _called(node) in self._functions:
                    changed += given
                changed += [one.value for one in node.keywords if one.arg == "out"]
                changed += node.args[:1] if _is_in_place(node) else []
            written += [(one, node) for one in changed]
        return written

    def roots(self, node: ast.expr) -> set[str]:
        """Return the names whose memory an expression may look at."""
        names, left = set[str](), [node]
        while left:
            one = left.pop()
            if isinstance(one, ast.Name) and one.id not in names:
                names.add(one.id)
                for setting in self._set[one.id]:
                    left += self._given(setting)
            elif isinstance(one, ast.Attribute | ast.Subscript | ast.Starred):
                left.append(one.value)
            elif isinstance(one, ast.Tuple | ast.List):
                left += one.elts
            elif isinstance(one, ast.Dict):
                left += one.values
            elif isinstance(one, ast.IfExp):
                left += one.body, one.orelse
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
                name, receiver = one.func.attr, one.func.value
                if ast.unparse(receiver).split(".")[0] == "torch":
                    left += one.args[:1] if name in VIEWS else []
                elif name != "clone":
                    left.append(receiver)
        return names

    def _given(self, target: ast.Name) -> list[ast.expr]:
        """Return what an assignment may give a name."""
        inner: ast.AST = target
        above = self._parent[target]
        while isinstance(above, ast.Tuple | ast.List | ast.Starred):
            inner, above = above, self._parent[above]
        if not isinstance(above, ast.Assign | ast.NamedExpr):
            return []
        match inner, above.value:
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if target in names:
                if not any(isinstance(one, ast.Starred) for one in (*names, *values)):
                    return values[names.index(target) :][:1]
        return [above.value]

    def is_item(self, node: ast.AST) -> bool:
        """Tell whether a loop takes this name from what it goes over: no counter."""
        if not isinstance(node, ast.Name) or not self.is_set_once(node.id):
            return False
        (target,) = self._set[node.id]
        inner: ast.AST = target
        for above in self.around(target):
            if isinstance(above, ast.For | ast.comprehension):
                called = above.iter.func if isinstance(above.iter, ast.Call) else None
                name = called.id if isinstance(called, ast.Name) else ""
                is_count = name == "range" or (
                    name == "enumerate"
                    and isinstance(above.target, ast.Tuple)
                    and above.target.elts[0] is target
                )
                return above.target is inner and not is_count
            if not isinstance(above, ast.Tuple | ast.List):
                return False
            inner = above
        return False

    def takes(self, name: str) -> bool:
        """Tell whether a function has an argument of a name."""
        return name in self._arguments

    def value(self, node: ast.expr) -> ast.expr:
        """Return what a name that is set once stands for; any other node is itself."""
        seen: set[str] = set()
        while isinstance(node, ast.Name) and self.is_set_once(node.id):
            statement = self.setting(node.id)
            if statement is None or node.id in seen:
                break
            seen.add(node.id)
            node = statement.value
        return node

    def uses(self, node: ast.expr, names: int = _MOST_NAMES) -> list[ast.expr] | None:
        """Return where a value is taken: itself, or the reads of the name that it has.

        Returns:
            None where it can't be followed.
        """
        above = self._parent.get(node)
        if not isinstance(above, ast.Assign) or above.value is not node:
            return [node]
        match above.targets:
            case [ast.Name(id=name)] if names and self.is_set_once(name):
                reads = [self.uses(one, names - 1) for one in self.reads(name)]
                if any(one is None for one in reads):
                    return None
                return [use for one in reads for use in one or ()]
        return None


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def _is_in_place(call: ast.Call) -> bool:
    place = _IN_PLACE.get(_called(call).split(".")[-1], len(call.args))
    given = [one.value for one in call.keywords if one.arg == "inplace"]
    for one in (*given, *call.args[place : place + 1]):
        if not isinstance(one, ast.Constant) or one.value:
            return True
    return False


def place_of(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
