"""A loop's turns as replays of one CUDA graph, which is captured when the cell runs.

The first turn computes as usual, the second is captured, and the last stays as it is,
so it leaves all names that the loop does. What a graph can't hold, such as a result
that is printed, stays in the loop, with all statements that follow it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    NameOrder,
    last_name,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.rewriting.host_copies import read_of
from warpbook_profiler.advice.rewriting.looped_values import with_loops
from warpbook_profiler.advice.rewriting.replayed import REPLAYED, STEPPING
from warpbook_profiler.advice.rewriting.turns import (
    Turns,
    UnsureError,
    attributes,
    counters,
    loaded,
    loops_of,
    rewritten,
)

#: a graph can't hold these, or another change is about them, or it is one
_NEVER = frozenset("synchronize sleep map replay".split())
_NO_TURNS = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Lambda),
    *(ast.While, ast.Try, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef),
)
#: the turn that stays
_LAST = "[-1:]"
_JOINS = frozenset("cat concat concatenate hstack vstack append".split())
_KEEPS = frozenset("append add".split())
#: methods that change a list, a set or a mapping of the cell's
_FILLS = _KEEPS | frozenset("extend insert pop remove clear update setdefault".split())
#: methods that change a list or a set, whatever else has them
_ADDS = _KEEPS | frozenset(["extend"])
_MAKES_TURNS = frozenset("range zip enumerate reversed".split())


def graphs(code: CellCode) -> Iterator[str]:
    """Write each loop that only computes so that its turns are a graph.

    An optimizer's steps are part of it, or else stay in the loop: a graph of them
    rounds otherwise, as their number is a tensor then.
    """
    seen, keeping = set[str](), _keeping(code.tree)
    # a comprehension's turns are those of a loop
    for one in (code, CellCode(with_loops(code, _is_call) or None)):
        for turns in loops_of(one.tree):
            if (form := ast.dump(turns.node)) in seen:
                continue
            seen.add(form)
            for outside in ("", "step") if code.calls("step") else ("",):
                try:
                    text = _Graph(one, turns, outside, keeping).written()
                except UnsureError:
                    continue
                if text:
                    yield text


class _Graph:
    def __init__(
        self, code: CellCode, turns: Turns, outside: str, keeping: set[str]
    ) -> None:
        #: attributes that turns read
        self._attributes = attributes(turns.body, ast.Load)
        self._keeping = keeping
        self._turns, self._edit, self._code = turns, SourceEdit(code), code
        #: a method whose calls stay outside of the graph
        self._method = outside
        #: of a turn: what the graph does, and what is done with its results
        self._inside, self._then = list[str](), list[str]()
        #: by their name, what turns give for that
        self._results, self._rows = dict[str, str](), dict[str, str]()
        #: what turns store results in
        self._filled = set[str]()
        #: names that say which turn it is: a graph has one number for all
        self._counts = _counts(turns)
        ends = [n for n, one in enumerate(turns.body) if self._is_outside(one)]
        end = ends[0] if ends else len(turns.body)
        self._body, self._rest = turns.body[:end], turns.body[end:]
        self._stored = stored_names(ast.Module(turns.body, []))

    def written(self) -> str:
        turns, edit = self._turns, self._edit
        if not _is_known(turns) or not any(map(_computes, self._body)):
            return ""
        self._inside = [line for one in self._body for line in self._taken(one)]
        inside = ast.parse("\n".join(self._inside) or "pass")
        first, bound = NameOrder(inside).read_first, stored_names(inside)
        carried = sorted(first & bound)
        self._then += [self._after(one, bound - {*carried}) for one in self._rest]
        acts = any(isinstance(one, ast.Expr) for one in ast.walk(inside))
        if self._filled & loaded(inside) or not (carried or self._results or acts):
            return ""
        given = (self._stored | turns.given | self._rows.keys()) & first
        names = [*carried, *sorted(given - {*carried})]
        turn, call = edit.free_name("turn"), edit.free_name("replay")
        every = edit.free_name("turns")
        results = [*carried, *self._results.values()]
        with_torch = {"torch": edit.torch, "contextlib": edit.module("contextlib")}
        optimizers = [] if self._method else self._optimizers(inside)
        stepping = edit.free_name("stepping") if optimizers else ""
        if stepping:
            edit.at_start(STEPPING.format(name=stepping, **with_torch))
        replayed = edit.free_name("replayed")
        edit.at_start(REPLAYED.format(name=replayed, **with_torch))
        called = f"{call}({', '.join(self._rows.get(one, one) for one in names)})"
        over = ast.unparse(turns.iter)
        is_range = over.startswith("range(")
        last = f", {stepping}({', '.join(optimizers)})" if stepping else ""
        into = f"({', '.join([*carried, *self._results])},) = "
        lines = [f"    {line}" for line in "\n".join(self._inside).splitlines()]
        before = [
            *(f"def {turn}({', '.join(names)}):", *lines),
            f"    return ({', '.join(results)}{',' if results else ''})",
            f"{every} = {over if is_range else f'list({over})'}",
            f"with {replayed}({turn}, {len(carried)}{last}) as {call}:",
            f"    for {ast.unparse(turns.target)} in {every}[:-1]:",
            f"        {into if results else ''}{called}",
            *(f"        {line}" for one in self._then for line in one.splitlines()),
            f"del {call}",
        ]
        if isinstance(turns.node, ast.For):
            edit.replace(turns.iter, f"{every}{_LAST}")
        else:
            (counter,) = turns.given
            before += [f"if {every}: {counter} = {every}[-1]"]
        edit.before(turns.node, "\n".join(before))
        return edit.source()

    def _is_outside(self, statement: ast.stmt) -> bool:
        """Tell whether the host reads results, or decides what a turn does."""
        varies = stored_names(ast.Module(self._turns.body, [])) | self._turns.given
        for node in ast.walk(statement):
            match node:
                case ast.Call(func=ast.Name(id="print")):
                    return True
                case ast.Call(func=ast.Attribute(attr=name)) if name == self._method:
                    return True
                case ast.If(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
                    if loaded(test) & varies:
                        return True
            read = read_of(node)
            if read is not None and not isinstance(read, ast.Constant):
                return True
        return False

    def _taken(self, statement: ast.stmt) -> list[str]:
        """Write a statement of the graph, or have it follow where it stores a result.

        Raises:
            UnsureError: it is neither.
        """
        if any(map(self._keeps, ast.walk(statement))):
            raise UnsureError
        match statement:
            case ast.Expr(
                ast.Call(
                    func=ast.Attribute(attr=method, value=ast.Name(id=name)),
                    args=[value],
                )
            ) if method in _KEEPS and name not in self._set_before(statement):
                return self._kept(statement, value, name)
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=place)],
                value=value,
            ) if loaded(place) & self._turns.given:
                return self._kept(statement, value, name)
            case ast.AugAssign(target=ast.Name(id=name), value=ast.Constant()) if (
                not self._is_read(name, statement)
            ):
                self._then.append(ast.unparse(statement))
                return []
            case ast.With(items=items, body=body) if not any(
                item.optional_vars for item in items
            ):
                head = ", ".join(map(ast.unparse, items))
                lines = [line for one in body for line in self._taken(one)]
                inner = "\n".join(lines).splitlines() or ["pass"]
                return [f"with {head}:", *(f"    {line}" for line in inner)]
        own = self._set_before(statement) | stored_names(statement)
        if any(_is_never(node, own) for node in ast.walk(statement)):
            raise UnsureError
        return [rewritten(statement, self._row)]

    def _keeps(self, node: ast.AST) -> bool:
        """Tell whether code keeps a value for later turns where no replay looks.

        That an object is of the class that has the method is a guess, by its name.
        """
        match node:
            case ast.Assign():
                return bool(attributes([node], ast.Store) & self._attributes)
            case ast.Call(func=ast.Name(id=name)) if name not in dir(builtins):
                ends: tuple[str, ...] = (f"_{name}", "___call__", "_forward")
            case ast.Call(func=ast.Attribute(attr=name)):
                ends = (f"_{name}",)
            case _:
                return False
        return any(f"_{one}".endswith(ends) for one in self._keeping)

    def _set_before(self, statement: ast.stmt) -> set[str]:
        """Give the names that a turn sets before a statement."""
        found = set[str]()
        for one in self._body:
            if one is statement:
                break
            found |= stored_names(one)
        return found

    def _kept(self, statement: ast.stmt, value: ast.expr, name: str) -> list[str]:
        """Have the graph compute what a turn stores."""
        result = self._edit.free_name("result")
        line = f"{result} = {rewritten(ast.Expr(value), self._row)}"
        self._results[result] = result
        self._filled.add(name)

        def instead(node: ast.expr) -> ast.expr | None:
            same = ast.unparse(node) == ast.unparse(value)
            return ast.Name(result, ast.Load()) if same else None

        self._then.append(rewritten(statement, instead))
        return [line]

    def _after(self, statement: ast.stmt, bound: set[str]) -> str:
        """Write a statement that stays in the loop; the graph gives what it needs."""
        # the host needs no gradient of what it reads
        read = {
            part
            for node in ast.walk(statement)
            if (value := read_of(node)) is not None
            for part in ast.walk(value)
        }
        names = [one for one in ast.walk(statement) if isinstance(one, ast.Name)]
        for one in names:
            if one.id in bound and isinstance(one.ctx, ast.Load):
                alike = [other for other in names if other.id == one.id]
                is_read = all(other in read for other in alike)
                found = f"{one.id}.detach()" if is_read else one.id
                # one statement may need all of it
                if self._results.get(one.id) != one.id:
                    self._results[one.id] = found
        return ast.unparse(statement)

    def _row(self, node: ast.expr) -> ast.expr | None:
        """Return the name of what only one turn takes; None for all else."""
        given = self._turns.given
        match node:
            case ast.Subscript(value=ast.Name(id=rows), slice=place) if loaded(
                place
            ) & given and isinstance(node.ctx, ast.Load):
                stored = self._stored | self._filled
                if rows in stored or loaded(place) & self._stored:
                    raise UnsureError
                text = ast.unparse(node)
                if text not in self._rows.values():
                    self._rows[self._edit.free_name("row")] = text
                names = [name for name, row in self._rows.items() if row == text]
                return ast.Name(names[0], ast.Load())
            case ast.Name(id=name) if name in self._counts:
                raise UnsureError
        return None

    def _is_read(self, name: str, but: ast.stmt) -> bool:
        return any(name in loaded(one) for one in self._body if one is not but)

    def _optimizers(self, inside: ast.Module) -> list[str]:
        """Give what may be an optimizer, or have one, if anything is trained."""
        tree, loop = self._code.tree, self._turns.node
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        hidden = set[str]()
        for one in functions:
            if loop not in ast.walk(one):
                given = [
                    part.arg for part in ast.walk(one) if isinstance(part, ast.arg)
                ]
                hidden |= stored_names(one) | {*given}
        found, taken = dict[str, None](), dict[str, None]()
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(attr="step", value=ast.Name(id=name))):
                    found[name] = None
        for node in ast.walk(inside):
            match node:
                case ast.Call(func=ast.Name(), args=parts, keywords=named):
                    parts = [*parts, *(one.value for one in named)]
                    taken |= {
                        one.id: None for one in parts if isinstance(one, ast.Name)
                    }
        if found.keys() & hidden:
            # a function is given it
            found |= taken
        own = stored_names(inside) | self._stored | self._turns.given | hidden
        return [name for name in found if name not in own | self._rows.keys()]


def _is_call(node: ast.AST) -> bool:
    """Tell whether code calls what may compute on a GPU."""
    return isinstance(node, ast.Call) and last_name(node.func) not in dir(builtins)


def _computes(statement: ast.stmt) -> bool:
    kinds = (ast.Call, ast.BinOp, ast.AugAssign)
    return any(isinstance(node, kinds) for node in ast.walk(statement))


def _is_known(turns: Turns) -> bool:
    """Tell whether a loop goes over what is there, and not over what is loaded."""
    if ast.unparse(turns.iter).endswith(_LAST):
        return False
    match turns.iter:
        case ast.Call(func=ast.Name(id=name), args=given):
            return name in _MAKES_TURNS and not any(
                isinstance(one, ast.Starred) for one in given
            )
        case ast.Call(func=ast.Attribute(attr=name), args=[]):
            return name in ("items", "values", "unbind")
    kinds = (ast.Name, ast.Subscript, ast.Attribute, ast.List, ast.Tuple)
    return isinstance(turns.iter, kinds)


def _is_never(node: ast.AST, own: set[str]) -> bool:
    """Tell whether a graph can't hold what code does, or is no help with it.

    Args:
        node: of the code.
        own: names that a turn sets, whose lists are its own.
    """
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=value)):
            is_filled = name in _FILLS and not loaded(value) & own
            return name in _NEVER or is_filled
        case ast.Call(func=ast.Name(id=name)):
            return name.rstrip("_") in _NEVER
        case ast.AugAssign(target=ast.Attribute(), value=ast.Constant()):
            # it counts
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            # it grows, and a graph has one size
            return last_name(call.func) in _JOINS and name in loaded(call)
    return isinstance(node, _NO_TURNS)


def _counts(turns: Turns) -> set[str]:
    match turns.iter:
        case ast.Call(func=ast.Name("reversed"), args=[ast.Call()]):
            return turns.given
    return counters(turns.target, turns.iter)


def _keeping(tree: ast.Module) -> set[str]:
    """Return the names of functions and methods that keep values for later calls."""
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    functions = [one for one in functions if not one.name.endswith("__init__")]
    read = attributes(functions, ast.Load)
    names = set[str]()
    for one in functions:
        own = stored_names(one)
        for node in ast.walk(one):
            match node:
                case ast.Global() | ast.Nonlocal():
                    pass
                case ast.Assign() if attributes([node], ast.Store) & read:
                    pass
                case ast.Expr(ast.Call(func=ast.Attribute(attr=name, value=value))) if (
                    name in _ADDS and not loaded(value) & own
                ):
                    pass
                case _:
                    continue
            names.add(one.name)
    return names
