"""Calls of functions, as what these functions do."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    STANDARD,
    CellCode,
    bound_names,
    last_name,
    stored_names,
    walk,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import MODULES
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.listed_values import with_comprehensions
from warpbook_profiler.advice.rewriting.looped_values import with_loops
from warpbook_profiler.advice.rewriting.turns import (
    loaded,
    rewritten,
    statement_of,
)

#: of functions that call others, which are in place of calls then
_MOST_ROUNDS = 4
#: put in place of calls in each
_MOST_STATEMENTS = 300
_OTHER = (
    *(ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.FunctionDef),
    *(ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Try),
    ast.Delete,
)


class _Straight(NamedTuple):
    """A function that leaves at its end alone, or yields once in each turn."""

    #: with what stands for each that a call leaves out; None where it may not
    arguments: dict[str, ast.expr | None]
    body: list[ast.stmt]
    #: None of a function that gives none
    value: ast.expr | None
    #: of a function that yields, behind `body`
    turns: ast.For | ast.While | None = None
    #: where in the turns it yields
    place: int = 0


def inlined(code: CellCode, wanted: Container[str]) -> str:
    """Write what functions do in place of calls; may be empty.

    Args:
        code: the cell, which defines them.
        wanted: their names.
    """
    text = ""
    for _ in range(_MOST_ROUNDS):
        text = _with_turns(code, wanted) or text
        code = CellCode(text) if text else code
        more = _inlined_once(code, wanted)
        if not more:
            break
        text, code = more, CellCode(more)
    return text


def _with_turns(code: CellCode, wanted: Container[str]) -> str:
    """Write what goes over values as loops and comprehensions; may be empty."""
    functions = straight_functions(code.tree).items()
    generators = {name for name, one in functions if one.turns and name in wanted}
    return with_comprehensions(code, generators)


def with_methods(
    code: CellCode, methods: Mapping[str, str], kinds: Mapping[str, Sequence[str]]
) -> str:
    """Write calls of methods as calls of functions; may be empty.

    That any other object is of the class is a guess, by the method's name.

    Args:
        code: of the cell, which defines the functions.
        methods: names of functions by those of methods, "Class.method".
        kinds: of which classes objects are, by their name.
    """
    own = bound_names(code.tree)
    known = {name: one for name, one in kinds.items() if name not in own}
    edit, straight = SourceEdit(code), straight_functions(code.tree)
    writing, done = _Functions(methods, known, own), set[ast.AST]()
    for statement in code.tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in straight:
            continue
        for node in walk(statement):
            if isinstance(node, ast.Call) and node not in done:
                new = writing.visit(copy.deepcopy(node))
                if ast.dump(new) != ast.dump(node):
                    done.update(walk(node))
                    edit.replace(node, ast.unparse(new))
    return edit.source()


class _Functions(ast.NodeTransformer):
    def __init__(
        self,
        methods: Mapping[str, str],
        kinds: Mapping[str, Sequence[str]],
        own: Container[str],
    ) -> None:
        self._methods, self._kinds, self._own = methods, kinds, own

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(value=value, attr=name) if (
                ast.unparse(value) not in MODULES
            ):
                names = [name]
            case ast.Name(id=called) as value if (
                called not in self._own
                and called not in STANDARD
                and called[0].islower()
            ):
                names = ["__call__", "forward"]
            case _:
                return node
        function = self._of(ast.unparse(value), names)
        if function is None:
            return node
        copied = ast.Name(function, ast.Load())
        return ast.Call(copied, [value, *node.args], node.keywords)

    def _of(self, receiver: str, names: list[str]) -> str | None:
        """Give what a method of an object is copied as; None where that is not sure."""
        kinds = self._kinds.get(receiver)
        if kinds is not None:
            paths = [f"{kind}.{name}" for kind in kinds for name in names]
            return next(
                (self._methods[it] for it in paths if it in self._methods), None
            )
        found = [
            function
            for path, function in self._methods.items()
            if path.rpartition(".")[2] in names
        ]
        return found[0] if len(found) == 1 else None


def straight_functions(tree: ast.Module) -> dict[str, _Straight]:
    """Give the functions of a source that can stand in place of their calls."""
    found = {
        node.name: _straight(node)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    return {name: one for name, one in found.items() if one is not None}


def own_functions(tree: ast.Module) -> set[str]:
    """Give those of a cell that are the same functions whenever they are called."""
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not defined:
        return set()
    times_set = Counter(
        node.id
        for node in walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    names = times_set + Counter(node.name for node in defined)
    return {
        node.name
        for node in defined
        if names[node.name] == 1 and node.name not in loaded(node)
    } & straight_functions(tree).keys()


def _inlined_once(code: CellCode, wanted: Container[str]) -> str:
    functions = {
        name: one
        for name, one in straight_functions(code.tree).items()
        if name in wanted
    }
    if not functions:
        return ""
    looped = with_loops(
        code,
        lambda node: isinstance(node, ast.Call) and last_name(node.func) in functions,
    )
    code = CellCode(looped) if looped else code
    edit, flow = SourceEdit(code), ValueFlow(code)
    seen, left = set[ast.stmt | None](), _MOST_STATEMENTS
    sizes = {
        one.name: sum(isinstance(part, ast.stmt) for part in walk(one))
        for one in code.tree.body
        if isinstance(one, ast.FunctionDef) and one.name in functions
    }
    for one in code.tree.body:
        if isinstance(one, ast.FunctionDef) and one.name in functions:
            continue
        for node in walk(one):
            match node:
                case ast.For(iter=ast.Call(func=ast.Name(id=name)) as call) if (
                    sizes.get(name, left) < left and functions[name].turns is not None
                ):
                    left -= sizes[name]
                    # what is within comes with the next round
                    seen.update(
                        part for part in walk(node) if isinstance(part, ast.stmt)
                    )
                    _inline_turns(edit, flow, node, call, functions[name])
                case ast.Call(func=ast.Name(id=name)) if (
                    sizes.get(name, left) < left and functions[name].turns is None
                ):
                    statement = flow.statement(node)
                    if statement not in seen:
                        left -= sizes[name]
                        seen.add(statement)
                        _inline(edit, flow, node, functions[name])
    return edit.source()


def _straight(node: ast.FunctionDef) -> _Straight | None:
    given, body = node.args, [*node.body]
    if given.vararg or given.kwarg or node.decorator_list:
        return None
    value: ast.expr | None = None
    turns: ast.For | ast.While | None = None
    place = 0
    match body[-1]:
        case ast.Return(value=value):
            body.pop()
        case ast.For(orelse=[]) | ast.While(orelse=[]) as loop:
            for at, statement in enumerate(loop.body):
                match statement:
                    case ast.Expr(value=ast.Yield(value=value)):
                        turns, place = loop, at
    others = [*body]
    if turns is not None:
        others = [*body[:-1], *turns.body[:place], *turns.body[place + 1 :]]
        body.pop()
    parts = [part for one in others for part in walk(one)]
    parts += [] if value is None else [*walk(value)]
    if any(isinstance(part, _OTHER) for part in parts):
        return None
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    defaults = dict(zip(reversed(names), reversed(given.defaults), strict=False))
    arguments = {name: defaults.get(name) for name in names}
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        arguments[one.arg] = default
    return _Straight(arguments, body, value, turns, place)


class _Placed(NamedTuple):
    """A function with the names that its statements have in another place."""

    names: dict[str, str]
    values: dict[str, ast.expr]
    #: what comes first
    lines: list[str]

    def text(self, node: ast.stmt) -> str:
        """Write a statement of the function."""
        return rewritten(node, self.renamed)

    def renamed(self, node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Name) and node.id in self.names:
            return ast.Name(self.names[node.id], node.ctx)
        return self.values.get(node.id) if isinstance(node, ast.Name) else None


def _placed(
    edit: SourceEdit, flow: ValueFlow, call: ast.Call, function: _Straight
) -> _Placed | None:
    """Give what a call does; None where that is not sure."""
    scope = flow.function(call)
    given = dict(zip(function.arguments, call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords if one.arg}
    values = {name: given.get(name) or one for name, one in function.arguments.items()}
    is_called_so = len(given) == len(call.args) + len(call.keywords) and not any(
        isinstance(one, ast.Starred) for one in call.args
    )
    if not is_called_so or given.keys() - values.keys() or None in values.values():
        return None
    does: list[ast.stmt] = [*function.body]
    does += [function.turns] if function.turns else []
    does += [ast.Expr(function.value)] if function.value else []
    whole = ast.Module(does, [])
    stored, free = stored_names(whole), loaded(whole) - values.keys()
    if scope is not None and (free - stored) & bound_names(scope):
        return None
    set_to = {
        name: one
        for name, one in values.items()
        if one and (name in stored or not isinstance(one, ast.Name | ast.Constant))
    }
    names = {one: edit.free_name(one) for one in sorted(stored | set_to.keys())}
    kept = {name: one for name, one in values.items() if one}
    lines = [f"{names[name]} = {ast.unparse(one)}" for name, one in set_to.items()]
    placed = _Placed(names, kept, lines)
    placed.lines.extend(placed.text(one) for one in function.body)
    return placed


def _inline(
    edit: SourceEdit, flow: ValueFlow, call: ast.Call, function: _Straight
) -> None:
    """Put what a function does before the statement that calls it, if that is sure."""
    statement = statement_of(flow, call)
    is_alone = isinstance(statement, ast.Expr) and statement.value is call
    if statement is None or (function.value is None and not is_alone):
        return
    placed = _placed(edit, flow, call, function)
    if placed is None:
        return
    if placed.lines:
        edit.before(statement, "\n".join(placed.lines))
    if function.value is not None:
        edit.replace(call, f"({placed.text(ast.Expr(function.value))})")
    else:
        edit.delete(statement)


def _inline_turns(
    edit: SourceEdit,
    flow: ValueFlow,
    loop: ast.For,
    call: ast.Call,
    function: _Straight,
) -> None:
    """Have a loop over what a function yields be that function's loop."""
    placed, turns = _placed(edit, flow, call, function), function.turns
    if placed is None or turns is None or function.value is None or loop.orelse:
        return
    first, last = turns.body[: function.place], turns.body[function.place + 1 :]
    leaves = any(isinstance(one, ast.Continue) for one in walk(loop))
    if last and leaves:
        return
    given = placed.text(ast.Expr(function.value))
    new = copy.copy(turns)
    new.body = [*first, ast.Pass(), *last]
    (made,) = ast.parse(placed.text(ast.fix_missing_locations(new))).body
    if isinstance(made, ast.For | ast.While):
        body = ast.parse(f"{ast.unparse(loop.target)} = {given}").body
        at = function.place
        made.body[at : at + 1] = [*body, *loop.body]
        edit.before(loop, "\n".join([*placed.lines, ast.unparse(made)]))
        edit.delete(loop)
