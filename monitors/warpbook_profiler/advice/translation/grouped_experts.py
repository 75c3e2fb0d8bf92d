"""A loop over experts of a mixture, written with one product for all of them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    blocks,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.loops import range_end
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import MODULES
from warpbook_profiler.advice.code.value_flow import ValueFlow

#: methods that give each token its most probable expert, with their axis
_CHOOSES = ("argmax", "max")
_LAST = ("-1", "1")
#: what makes places of a mask
_PLACES = ("nonzero", "where", "squeeze", "flatten", "view", "reshape")
_NO_AXES = frozenset(("", "0", "1", "-1"))
#: functions and methods of each number, whatever token it is of
_OF_NUMBERS = frozenset(
    "gelu silu relu leaky_relu elu mish sigmoid tanh exp square sqrt abs mul add sub "
    "div".split()
)
_TURNED = ("T", "mT")


class _UnsureError(Exception):
    """It is not sure that all tokens at once give the same."""


class _Loop(NamedTuple):
    node: ast.For
    #: the name of the expert's number
    number: str
    #: how many there are, as text
    end: str
    #: by the name of one expert's weights, those of all
    weights: Mapping[str, ast.expr]


def grouped(code: CellCode) -> str:
    """Write the first loop over experts as grouped products; empty where not sure.

    The trace has to tell that each token has one expert, which the loop comes to, and
    that products can be grouped.
    """
    for block in blocks(code.tree):
        for statement in block.statements:
            loop = _loop(statement) if isinstance(statement, ast.For) else None
            if loop is not None:
                try:
                    return _Experts(code, loop).written()
                except _UnsureError:
                    continue
    return ""


def _loop(node: ast.For) -> _Loop | None:
    if node.orelse:
        return None
    match node.target, node.iter:
        case ast.Name(id=index), ast.Call(func=ast.Name(id="range")):
            end = range_end(node.iter)
            return _Loop(node, index, end, {}) if end else None
        case (
            ast.Tuple(elts=[ast.Name(id=index), ast.Name(id=one)]),
            ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name() as all_of]),
        ):
            return _Loop(node, index, f"len({all_of.id})", {one: all_of})
        case (
            ast.Tuple(elts=[ast.Name(id=index), ast.Tuple(elts=ones)]),
            ast.Call(
                func=ast.Name(id="enumerate"),
                args=[ast.Call(func=ast.Name(id="zip"), args=wholes)],
            ),
        ):
            names = {
                one.id: whole
                for one, whole in zip(ones, wholes, strict=False)
                if isinstance(one, ast.Name) and isinstance(whole, ast.Name)
            }
            if len(names) == len(ones) == len(wholes):
                return _Loop(node, index, f"len({ast.unparse(wholes[0])})", names)
    return None


class _Experts:
    def __init__(self, code: CellCode, loop: _Loop) -> None:
        self._code, self._loop = code, loop
        self._edit = SourceEdit(code)
        self._flow = ValueFlow(code)
        self._stored = stored_names(loop.node)
        #: by the name that a turn sets, that of all tokens
        self._all: dict[str, str] = {}
        self._tokens, self._chosen, self._order, self._ends = "", "", "", ""
        self._is_product = False

    def written(self) -> str:
        """Write the cell.

        Raises:
            _UnsureError: a statement is not known to give the same.
        """
        first, *rest = self._loop.node.body
        self._choose(first)
        edit, torch = self._edit, self._edit.torch
        self._order, self._ends = map(edit.free_name, ("order", "ends"))
        while rest and self._only_skips(rest[0]):
            rest = rest[1:]
        *steps, keeps = rest
        lines = [
            f"{self._order} = {self._chosen}.argsort()",
            f"{self._ends} = {torch}.searchsorted({self._chosen}[{self._order}], "
            f"{torch}.arange({self._loop.end}, device={self._chosen}.device), "
            "right=True, out_int32=True)",
        ]
        for step in steps:
            match step:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    text = ast.unparse(self._rows(value))
                    self._all[name] = edit.free_name(f"{name}_all")
                    lines.append(f"{self._all[name]} = {text}")
                case _:
                    raise _UnsureError
        kept = self._kept(keeps)
        if not self._is_product:
            raise _UnsureError
        edit.before(self._loop.node, "\n".join(lines))
        edit.replace(self._loop.node, kept)
        return edit.source()

    def _choose(self, statement: ast.stmt) -> None:
        """Read `mine = chosen == number`, or the places of it."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                mask = _mask(value)
                if mask is None:
                    raise _UnsureError
            case _:
                raise _UnsureError
        sides = [mask.left, *mask.comparators]
        texts = [ast.unparse(one) for one in sides]
        if texts.count(self._loop.number) != 1 or not isinstance(mask.ops[0], ast.Eq):
            raise _UnsureError
        chosen = sides[1 - texts.index(self._loop.number)]
        if not isinstance(chosen, ast.Name) or not self._is_best(chosen):
            raise _UnsureError
        self._tokens, self._chosen = name, chosen.id

    def _is_best(self, chosen: ast.Name) -> bool:
        """Tell whether a name holds each token's best expert."""
        setting = self._flow.settings(chosen.id)[:1]
        is_kept = self._flow.is_set_once(chosen.id) and self._flow.is_same(
            chosen.id, setting[0], self._loop.node
        )
        if not is_kept:
            # a token that has none is left out by the loop alone
            return False
        made = [
            (node.targets[0], node.value)
            for node in ast.walk(self._code.tree)
            if isinstance(node, ast.Assign) and chosen.id in stored_names(node)
        ]
        match made:
            case [(target, ast.Call() as call)]:
                pass
            case _:
                return False
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        given = [*call.args, *(one.value for one in call.keywords)]
        is_pair = isinstance(target, ast.Tuple) and len(target.elts) == 2
        is_second = isinstance(target, ast.Tuple) and (
            ast.unparse(target.elts[-1]) == chosen.id
        )
        is_last = bool(given) and ast.unparse(given[-1]) in _LAST
        fits = is_pair and is_second if name == "max" else isinstance(target, ast.Name)
        return name in _CHOOSES and is_last and fits

    def _only_skips(self, statement: ast.stmt) -> bool:
        """Tell whether a statement leaves a turn that has no tokens."""
        match statement:
            case ast.If(test=test, body=[ast.Continue()], orelse=[]):
                texts = (
                    f"not {self._tokens}.any()",
                    f"{self._tokens}.numel() == 0",
                    f"len({self._tokens}) == 0",
                    f"not len({self._tokens})",
                )
                return ast.unparse(test) in texts
        return False

    def _kept(self, statement: ast.stmt) -> str:
        match statement:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name() as out, slice=place)],
                value=value,
            ):
                sign = "="
            case ast.AugAssign(
                target=ast.Subscript(value=ast.Name() as out, slice=place),
                op=ast.Add(),
                value=value,
            ):
                sign = "+="
            case ast.Expr(
                ast.Call(
                    func=ast.Attribute(attr="index_add_", value=ast.Name() as out),
                    args=[ast.Constant(value=0), place, value],
                    keywords=[],
                )
            ):
                sign = ""
            case _:
                raise _UnsureError
        if ast.unparse(place) != self._tokens or out.id in self._read:
            raise _UnsureError
        rows = ast.unparse(self._rows(value))
        if sign:
            return f"{out.id}[{self._order}] {sign} {rows}"
        return f"{out.id}.index_add_(0, {self._order}, {rows})"

    @property
    def _read(self) -> set[str]:
        """Give the names that turns read beside the one that they fill."""
        *steps, last = self._loop.node.body
        value = last.value if isinstance(last, ast.Assign | ast.AugAssign) else None
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
            value = last.value.args[-1]
        parts = [*steps, *([value] if value else [])]
        return {
            node.id
            for part in parts
            for node in ast.walk(part)
            if isinstance(node, ast.Name)
        }

    def _rows(self, node: ast.expr) -> ast.expr:
        """Write an expression of an expert's tokens for all tokens, in their order.

        Raises:
            _UnsureError: it may mix tokens, or is of one expert.
        """
        match node:
            case ast.Constant():
                return node
            case ast.Name(id=name) if name in self._all:
                return ast.Name(self._all[name], ast.Load())
            case ast.Name(id=name) if name not in self._stored:
                # the same for all tokens
                return node
            case ast.Subscript(value=ast.Name(id=name) as whole, slice=place) if (
                name not in self._stored
            ):
                parts = place.elts if isinstance(place, ast.Tuple) else [place]
                texts = [ast.unparse(part) for part in parts]
                if texts[0] != self._tokens or set(texts[1:]) - {"None", ":"}:
                    raise _UnsureError
                order: ast.expr = ast.Name(self._order, ast.Load())
                index = ast.Tuple([order, *parts[1:]], ast.Load())
                return ast.Subscript(
                    whole, order if len(parts) == 1 else index, ast.Load()
                )
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._product(left, right)
            case ast.BinOp(left=left, op=op, right=right):
                return ast.BinOp(self._rows(left), op, self._rows(right))
            case ast.Call(func=ast.Attribute(attr=name, value=receiver) as function):
                given = [*node.args, *(one.value for one in node.keywords)]
                is_widened = name == "unsqueeze" and ast.unparse(node).endswith("(-1)")
                if name not in _OF_NUMBERS and not is_widened:
                    raise _UnsureError
                is_module = (
                    isinstance(receiver, ast.Name | ast.Attribute)
                    and ast.unparse(receiver).split(".")[0] in MODULES
                )
                if is_module:
                    if not given or not all(map(_is_plain, given[1:])):
                        raise _UnsureError
                    args = [self._rows(node.args[0]), *node.args[1:]]
                    return ast.Call(function, args, node.keywords)
                if not all(map(_is_plain, given)):
                    raise _UnsureError
                method = ast.Attribute(self._rows(receiver), name, ast.Load())
                return ast.Call(method, node.args, node.keywords)
        raise _UnsureError

    def _product(self, left: ast.expr, right: ast.expr) -> ast.expr:
        rows, weights = self._rows(left), self._weights(right)
        if not names_in(rows) & {self._order, *self._all.values()}:
            raise _UnsureError
        self._is_product = True
        function = ast.parse(
            f"{self._edit.torch}.nn.functional.grouped_mm", mode="eval"
        ).body
        ends = ast.keyword("offs", ast.Name(self._ends, ast.Load()))
        return ast.Call(function, [rows, weights], [ends])

    def _weights(self, node: ast.expr) -> ast.expr:
        """Write one expert's weights as those of all."""
        match node:
            case ast.Attribute(attr=name, value=value) if name in _TURNED:
                return ast.Attribute(self._weights(value), "mT", ast.Load())
            case ast.Name(id=name) if name in self._loop.weights:
                return copy.copy(self._loop.weights[name])
            case ast.Subscript(value=ast.Name(id=name) as whole, slice=place) if (
                name not in self._stored
                and ast.unparse(place) == self._loop.number
                and name not in self._loop.weights
            ):
                if not isinstance(self._flow.value(whole), ast.List | ast.ListComp):
                    return whole
        raise _UnsureError


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    )


def _mask(node: ast.expr) -> ast.Compare | None:
    """Give the comparison that a mask is, or whose places are taken."""
    while True:
        match node:
            case ast.Compare(ops=[_]):
                return node
            case ast.Subscript(value=ast.Call() as inner, slice=place):
                if ast.unparse(place) not in ("0", "(:, 0)"):
                    return None
                node = inner
            case ast.Call(func=ast.Attribute(attr=name, value=inner), args=args) if (
                name in _PLACES and not node.keywords
            ):
                if ast.unparse(inner) == "torch":
                    if len(args) != 1:
                        return None
                    (node,) = args
                else:
                    if {ast.unparse(one) for one in args} - _NO_AXES:
                        return None
                    node = inner
            case _:
                return None
