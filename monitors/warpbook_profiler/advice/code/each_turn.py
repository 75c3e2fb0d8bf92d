"""What a loop does for each of several tensors, and if all can be listed before."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import bound_names, names_in
from warpbook_profiler.advice.code.source_edit import SourceEdit

#: methods and functions that make what nothing else holds
MAKES = frozenset(
    "norm vector_norm sum mean pow square sqrt rsqrt reciprocal clamp clamp_min "
    "clamp_max clip min max minimum maximum add sub mul div abs exp item stack "
    "zeros ones full tensor new_zeros new_ones new_full new_tensor tolist".split()
)
#: they give what they take, or a copy of it
PASSES = frozenset("detach float double to cpu cuda type".split())
#: of a turn, before a norm is taken; they need no values
_METADATA = frozenset(
    "isinstance hasattr len startswith endswith numel dim is_floating_point".split()
)
_FLAGS = frozenset("requires_grad is_leaf is_cuda is_sparse".split())
BUILTINS = frozenset("float int abs sum min max list tuple sorted len".split())
_GOES_OVER = frozenset("enumerate zip reversed list tuple".split())
_HOLDS = frozenset("parameters named_parameters values items keys".split())
#: they compute their parts later, not always, or bind names
UNSURE = (
    *(ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom),
)


class Each(NamedTuple):
    """What a loop does for each of several things, and how it goes through them."""

    body: list[ast.stmt]
    #: "for w in weights", with what leaves some out
    clause: str
    #: what the loop sets
    names: set[str]
    over: ast.expr
    tests: list[ast.expr]

    def gives(self, text: str) -> str:
        """Write the list of an expression of all turns."""
        return f"[{text} {self.clause}]"

    def is_free(self, *nodes: ast.expr) -> bool:
        """Tell whether expressions are the same in all turns."""
        return not any(self.names & names_in(node) for node in nodes)

    def is_known(self, stored: set[str]) -> bool:
        """Tell whether turns are the same ones before anything of them is done.

        Args:
            stored: names that turns set.
        """
        parts = [self.over, *self.tests]
        is_kept = not any(stored & names_in(part) for part in parts)
        return (
            is_kept and _goes_over(self.over) and all(map(_reads_metadata, self.tests))
        )


def each(edit: SourceEdit, loop: ast.stmt) -> Each | None:
    """Read a loop, whose statements an `if` may be around; None for others."""
    if not isinstance(loop, ast.For) or loop.orelse:
        return None
    body, tests = loop.body, list[ast.expr]()
    clause = f"for {edit.text(loop.target)} in {edit.text(loop.iter)}"
    match body:
        case [ast.If(test=test, body=[ast.Continue()], orelse=[]), *rest]:
            body, clause = rest, f"{clause} if not ({edit.text(test)})"
            tests.append(test)
        case [ast.If(test=test, body=rest, orelse=[])]:
            body, clause = rest, f"{clause} if {edit.text(test)}"
            tests.append(test)
    return Each(body, clause, bound_names(loop.target), loop.iter, tests)


def each_of(edit: SourceEdit, clause: ast.comprehension) -> Each:
    """Read the turns of a list or dictionary that is made."""
    text = f"for {edit.text(clause.target)} in {edit.text(clause.iter)}"
    text += "".join(f" if {edit.text(test)}" for test in clause.ifs)
    return Each([], text, bound_names(clause.target), clause.iter, clause.ifs)


def _goes_over(node: ast.expr) -> bool:
    """Tell whether a loop goes over what is there before, and nobody's generator."""
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            return _goes_over(value)
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=[]):
            return name in _HOLDS and _goes_over(value)
        case ast.Call(func=ast.Name(id="range"), args=given):
            return all(map(is_plain, given))
        case ast.Call(func=ast.Name(id=name), args=given):
            return name in _GOES_OVER and all(map(_goes_over, given))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(is_plain, parts))
        case (
            ast.ListComp(elt=one, generators=[clause])
            | ast.GeneratorExp(elt=one, generators=[clause])
        ):
            is_known = _goes_over(clause.iter) and all(map(_reads_metadata, clause.ifs))
            return is_known and is_plain(one)
    return False


def _reads_metadata(test: ast.expr) -> bool:
    """Tell whether a condition needs no tensor's values."""
    match test:
        case ast.BoolOp(values=parts):
            return all(map(_reads_metadata, parts))
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _reads_metadata(inner)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return is_plain(test)
        case ast.Compare(left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()]):
            return is_plain(test)
        case ast.Compare(left=ast.Call() as left, comparators=[ast.Constant()]):
            return _reads_metadata(left)
        case ast.Attribute(attr=name):
            return name in _FLAGS and is_plain(test)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            parts = [*test.args, test.func]
            return name in _METADATA and all(map(is_plain, parts))
    return False


def is_plain(node: ast.AST) -> bool:
    """Tell whether an expression changes nothing, and calls no unknown function."""
    return (
        not isinstance(node, UNSURE)
        and (not isinstance(node, ast.Call) or is_plain_call(node))
        and all(map(is_plain, ast.iter_child_nodes(node)))
    )


def is_plain_call(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=name):
            return name in BUILTINS
        case ast.Attribute(attr=name, value=value):
            return name in MAKES | PASSES or ast.unparse(value) == "math"
    return False


def is_apart(loop: ast.For, changed: ast.expr, value: ast.expr) -> bool:
    """Tell whether no turn's value looks at what an earlier turn changed."""
    own, roots = {*_roots(changed)}, {*_roots(value)}
    if len(own) != 1 or not is_plain(value):
        return False
    # a turn's own item may hold both
    others = roots - (own & bound_names(loop.target))
    return not {_held(loop, one) for one in own} & {_held(loop, one) for one in others}


def _roots(node: ast.AST) -> Iterator[str]:
    """Give the names that a value is a part of, but not those of its places."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Subscript):
        yield from _roots(node.value)
    else:
        for part in ast.iter_child_nodes(node):
            yield from _roots(part)


def _held(loop: ast.For, name: str) -> str:
    """Write what holds a name's values in all turns; the name where it is no turn's."""
    pairs = [(loop.target, loop.iter)]
    match loop.target, loop.iter:
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=given):
            pairs = list(zip(targets, given, strict=False))
    for target, source in pairs:
        if name in bound_names(target):
            return _whole(source)
    return name


def _whole(source: ast.expr) -> str:
    match source:
        case (
            ast.Subscript(value=inner)
            | ast.Call(func=ast.Attribute(attr="items" | "values", value=inner))
            | ast.Call(func=ast.Name(id="enumerate" | "reversed"), args=[inner])
        ):
            return _whole(inner)
    return ast.unparse(source)
