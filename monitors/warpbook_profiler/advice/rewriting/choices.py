"""Branches on a tensor's value in a loop, as choices that the GPU makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode, stored_names
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.turns import (
    UnsureError,
    counters,
    loaded,
    rewritten,
    values_of,
    whole_loops,
)

_LOGICAL = {ast.And: "logical_and", ast.Or: "logical_or"}
#: of torch: for all values defined, so a GPU may compute what is not chosen
_DEFINED = frozenset(
    "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos "
    "tan tanh sigmoid relu erf sign round floor ceil trunc clamp nan_to_num lerp "
    "minimum maximum add sub mul where isfinite isnan isinf logical_and logical_or "
    "logical_not sum mean amax amin max min argmax argmin norm any all softmax mv mm "
    "matmul dot t unsqueeze clone detach item float double half bfloat16 zeros_like "
    "ones_like zeros ones full flip roll".split()
)
_OF_TWO = frozenset("minimum maximum add sub mul mv mm matmul dot lerp".split())
_KEYWORDS = frozenset("dim dims shifts keepdim dtype device min max".split())
_ATTRIBUTES = frozenset("T mT inf shape dtype device float32 float64 int64".split())
_PLAIN = (
    *(ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Slice, ast.UnaryOp, ast.Compare),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.cmpop),
)
#: what the GPU can't choose as Python does, the host does; floats have 64 bits
_CHOSEN = """\
def {name}(chosen, one, other):
    kinds = {{bool: {torch}.bool, int: {torch}.int64, float: {torch}.float64}}
    if getattr(chosen, "dtype", None) == {torch}.bool and not chosen.dim():
        values = [
            {torch}.full((), value, dtype=kinds[type(value)], device=chosen.device)
            if type(value) in kinds
            else value
            for value in (one, other)
        ]
        looks = {{
            (value.shape, value.device, value.requires_grad)
            if type(value) is {torch}.Tensor
            else None
            for value in values
        }}
        if len(looks) == 1 and looks <= {{(values[0].shape, chosen.device, False)}}:
            dtypes = {{value.dtype for value in values}}
            if len(dtypes) == 1 or dtypes == {{{torch}.int64, {torch}.float64}}:
                return {torch}.where(chosen, *values)
    return one if chosen else other"""
#: a number as it is now, whatever is written to its tensor later
_NUMBER_OF = """\
def {name}(value, number=None):
    if not isinstance(value, {torch}.Tensor) or value.is_complex():
        return number(value) if number else value.item()
    dtype = {torch}.float64 if value.is_floating_point() or number else {torch}.int64
    dtype = value.dtype if value.dtype == {torch}.bool and not number else dtype
    return value.detach().reshape(()).to(dtype, copy=True)"""
#: after a loop, of what was a number before it
_NUMBER = "{name} = {name}.item() if hasattr({name}, 'item') else {name}"


def choices(code: CellCode) -> Iterator[str]:
    """Write the branches of each loop that set names as choices of the GPU."""
    for loop in whole_loops(code.tree):
        try:
            text = _Choices(code, loop).written()
        except UnsureError:
            continue
        if text:
            yield text


class _Choices:
    def __init__(self, code: CellCode, loop: ast.For | ast.While) -> None:
        self._loop, self._edit, self._flow = loop, SourceEdit(code), ValueFlow(code)
        self._counts = (
            counters(loop.target, loop.iter) if isinstance(loop, ast.For) else set()
        )
        self._values = values_of(code.tree)
        self._numeric = _numbers(self._values, self._counts)
        self._chosen_of = self._edit.free_name("chosen_of")
        self._number_of = self._edit.free_name("number_of")

    def written(self) -> str:
        loop, edit, numbers = self._loop, self._edit, set[str]()
        computed = _computed(loop)
        found = [
            one
            for one in loop.body
            if isinstance(one, ast.If) and loaded(one.test) & computed
        ]
        for name, value in _set_for(loop, found):
            number = self._number(value)
            if number is not None:
                edit.replace(value, ast.unparse(number))
                numbers.add(name)
        for branch in found:
            chosen = edit.free_name("chosen")
            lines = [f"{chosen} = {self._condition(branch.test)}"]
            taken, others = (
                self._arm(arm, end, lines)
                for arm, end in ((branch.body, "then"), (branch.orelse, "otherwise"))
            )
            for name in sorted(taken.keys() | others.keys()):
                one, other = taken.get(name, name), others.get(name, name)
                lines.append(f"{name} = {self._chosen_of}({chosen}, {one}, {other})")
            edit.before(branch, "\n".join(lines[:-1]))
            edit.replace(branch, lines[-1])
            numbers |= (taken.keys() | others.keys()) & self._numeric
        if not found:
            return ""
        helpers = [(_CHOSEN, self._chosen_of), (_NUMBER_OF, self._number_of)]
        texts = [one.format(name=name, torch=edit.torch) for one, name in helpers]
        edit.before(loop, "\n".join(texts))
        if numbers:
            ends = [_NUMBER.format(name=one) for one in sorted(numbers)]
            edit.after(loop, "\n".join(ends))
        return edit.source()

    def _condition(self, test: ast.expr) -> str:
        torch = self._edit.torch
        match test:
            case ast.BoolOp(op=op, values=[first, *others]):
                text = self._condition(first)
                for one in others:
                    # Python may not come to it
                    if not self._is_safe(one):
                        raise UnsureError
                    name = f"{torch}.{_LOGICAL[type(op)]}"
                    text = f"{name}({text}, {self._condition(one)})"
                return text
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"{torch}.logical_not({self._condition(operand)})"
            case ast.Call(func=ast.Name(id="bool"), args=[value]):
                return self._condition(value)
        return rewritten(ast.Expr(test), self._number)

    def _number(self, node: ast.expr) -> ast.expr | None:
        """Leave a number that the host reads where it is."""
        match node:
            case ast.Call(func=ast.Attribute(attr="item", value=value), args=[]):
                given = [value]
            case ast.Call(
                func=ast.Name(id="float") as kind, args=[ast.Call() as value]
            ):
                given = [value, kind]
            case _:
                return None
        return ast.Call(ast.Name(self._number_of, ast.Load()), given, [])

    def _arm(self, arm: list[ast.stmt], end: str, lines: list[str]) -> dict[str, str]:
        """Write an arm with names of its own; return these by the names that it sets.

        Raises:
            UnsureError: it does more than set names, to what is always defined.
        """
        names: dict[str, str] = {}

        def renamed(node: ast.expr) -> ast.expr | None:
            if isinstance(node, ast.Name) and node.id in names:
                return ast.Name(names[node.id], ast.Load())
            return self._number(node)

        for one in arm:
            match one:
                case ast.Assign(targets=[target], value=value):
                    pass
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=operand) if (
                    name in self._numeric
                ):
                    target = ast.Name(name, ast.Store())
                    value = ast.BinOp(ast.Name(name, ast.Load()), op, operand)
                case ast.Pass():
                    continue
                case _:
                    raise UnsureError
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            set_now = [part.id for part in parts if isinstance(part, ast.Name)]
            if len(set_now) != len(parts) or not self._is_safe(value):
                raise UnsureError
            if any(map(self._is_shared, {*set_now, *_whole_names(value)})):
                raise UnsureError
            text = rewritten(ast.Expr(value), renamed)
            names |= {name: self._edit.free_name(f"{name}_{end}") for name in set_now}
            lines.append(f"{', '.join(names[name] for name in set_now)} = {text}")
        return names

    def _is_shared(self, name: str) -> bool:
        """Tell whether it matters that a choice is a tensor of its own, or a number."""
        if name in self._numeric | self._counts:
            return False
        is_mixed = any(
            value is not None and _is_number(value, self._numeric)
            for value in self._values[name]
        )
        loop, names = self._loop, {name}
        if isinstance(loop, ast.For) and name in stored_names(loop.target):
            names |= loaded(loop.iter)
        return is_mixed or any(map(self._flow.is_written, names))

    def _is_safe(self, value: ast.expr) -> bool:
        """Tell whether a value may be computed where Python does not."""
        return all(self._is_defined(part) for part in ast.walk(value))

    def _is_defined(self, node: ast.AST) -> bool:
        match node:
            case ast.Subscript(slice=place):
                places = place.elts if isinstance(place, ast.Tuple) else [place]
                return all(map(self._is_place, places))
            case ast.BinOp(op=ast.Div(), right=right):
                return bool(_constant(right)) or self._is_computed(right)
            case ast.BinOp(op=ast.Pow(), right=right):
                return _constant(right) is not None
            case ast.BinOp(op=op):
                return isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.MatMult)
            case ast.keyword(arg=name):
                return name in _KEYWORDS
            case ast.Attribute(attr=name):
                return name in _ATTRIBUTES | _DEFINED
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"))):
                return True
            case ast.Call(func=ast.Attribute(attr=name), args=args):
                numbers = [one for one in args if _constant(one) is not None]
                return len(numbers) == len(args) or (name in _OF_TWO and len(args) == 1)
            case ast.Call(func=ast.Name(id="float"), args=[ast.Call()]):
                return True
            case ast.Call(func=ast.Name(id="abs")):
                return True
        return isinstance(node, _PLAIN)

    def _is_computed(self, node: ast.expr) -> bool:
        """Tell whether torch computes a value: Python divides no number by zero."""
        if isinstance(node, ast.Name):
            made = [one for one in self._values[node.id] if one is not None]
            is_made = len(made) == len(self._values[node.id]) > 0
            return is_made and all(
                isinstance(one, ast.Call) and self._is_computed(one) for one in made
            )
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name != "item":
                return name in _DEFINED and self._is_defined(node)
        return False

    def _is_place(self, place: ast.expr) -> bool:
        """Tell whether the host knows a place, and checks it."""
        match place:
            case ast.Name(id=name):
                return name in self._counts
            case ast.Slice(lower=lower, upper=upper, step=step):
                ends = [one for one in (lower, upper, step) if one is not None]
                return all(isinstance(_constant(one), int) for one in ends)
        return isinstance(_constant(place), int)


def _set_for(
    loop: ast.For | ast.While, branches: list[ast.If]
) -> Iterator[tuple[str, ast.expr]]:
    """Find what is set for branches alone, `e = loss.item()`."""
    for statement in loop.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                others = [one for one in loop.body if one not in branches]
                is_read = any(name in loaded(one) for one in others)
                if not is_read and any(name in loaded(one) for one in branches):
                    yield name, value


def _computed(loop: ast.For | ast.While) -> set[str]:
    """Return the names that turns compute, and do not only count."""
    return {
        name
        for part in ast.walk(ast.Module(loop.body, []))
        if isinstance(part, ast.Assign)
        and any(isinstance(one, ast.Call | ast.BinOp) for one in ast.walk(part.value))
        for target in part.targets
        for name in stored_names(target)
    }


def _numbers(values: dict[str, list[ast.expr | None]], counts: set[str]) -> set[str]:
    """Return the names that are never set to anything but a number of Python."""
    numeric, left = set[str](), {*values}
    while numeric != left:
        numeric = left
        left = {
            name
            for name in numeric
            if all(
                value is not None and _is_number(value, numeric | counts)
                for value in values[name]
            )
        }
    return numeric


def _is_number(node: ast.expr, numeric: set[str]) -> bool:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            return True
        case ast.Name(id=name):
            return name in numeric
        case ast.UnaryOp(operand=operand):
            return _is_number(operand, numeric)
        case ast.BinOp(left=left, right=right):
            return _is_number(left, numeric) and _is_number(right, numeric)
        case ast.Call(func=ast.Name(id="float" | "int")):
            return True
        case ast.Call(func=ast.Attribute(attr="item")):
            return True
        case ast.Attribute(attr="inf"):
            return True
    return False


def _constant(node: ast.expr) -> int | float | None:
    """Return a number that is written down."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number_of = _constant(operand)
            return None if number_of is None else -number_of
    return None


def _whole_names(value: ast.expr) -> set[str]:
    """Return the names that a value is, or its parts are."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return {part.id for part in parts if isinstance(part, ast.Name)}
