"""A loop over lists of tensors, as the same arithmetic on the lists.

Names that a turn sets are lists of all turns. Numbers stay numbers. What torch has no
function on lists for stays a loop of its own, in the order of the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, NameOrder, stored_names
from warpbook_profiler.advice.code.each_turn import each
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import BINARY
from warpbook_profiler.advice.rewriting.turns import (
    LAZY,
    UnsureError,
    counters,
    loaded,
)

#: that may change their sides
_SWAPPED = frozenset("add mul".split())
#: methods, and functions of torch, of one tensor and of one with others
_UNARY = frozenset("abs exp log neg reciprocal rsqrt sigmoid sign sqrt tanh".split())
_OTHERS = frozenset(
    "add sub mul div pow addcmul addcdiv lerp clamp_min clamp_max".split()
)
_IN_PLACE = _OTHERS | _UNARY | {"zero", "copy"}
_BINARY = {kind: name for kind, name in BINARY.items() if name in _OTHERS}
#: functions that take `alpha` with a list
_SCALED = frozenset("add sub".split())


class _Value(NamedTuple):
    """Code for a value: a list of all turns', or one that is the same in all."""

    text: str
    is_list: bool
    #: of numbers of Python
    has_numbers: bool = False


def foreach(code: CellCode) -> Iterator[str]:
    """Write each loop over tensors that only computes with each as calls on lists."""
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.For):
            continue
        try:
            text = _Lists(code, node).written()
        except UnsureError:
            continue
        if text:
            yield text


class _Lists:
    def __init__(self, code: CellCode, loop: ast.For) -> None:
        self._edit, self._loop = SourceEdit(code), loop
        self._lines = list[str]()
        #: by names that turns set, or are given, the lists of what they are in all
        self._every: dict[str, str] = {}
        self._calls = 0
        #: names that count turns
        self._counts = counters(loop.target, loop.iter)

    def written(self) -> str:
        loop, edit = self._loop, self._edit
        turn = each(edit, loop)
        if turn is None:
            return ""
        turns = edit.free_name("turns")
        target = ast.unparse(loop.target)
        given = target.strip("()") if isinstance(loop.target, ast.Tuple) else target
        every = turn.gives(f"({given})")
        if not turn.tests:
            every = f"list({edit.text(loop.iter)})"
        self._lines.append(f"{turns} = {every}")
        # of each name a list
        for name in sorted(turn.names):
            every = edit.free_name(f"every_{name}")
            self._lines.append(f"{every} = [{name} for {target} in {turns}]")
            self._every[name] = every
        body = ast.Module(turn.body, [])
        if (NameOrder(body).read_first & stored_names(body)) - turn.names:
            # a turn needs the one before it
            return ""
        for statement in turn.body:
            self._take(statement)
        if not self._calls:
            return ""
        kept = (stored_names(body) - turn.names) & {*self._every}
        lines = [f"{name} = {self._every[name]}[-1]" for name in sorted(kept)]
        first, *others = self._lines
        # what a loop leaves out is among what it gives, too
        over = edit.text(loop.iter) if turn.tests else f"{turns}[-1:]"
        last = f"for {target} in {over}: pass"
        lines = [first, f"if {turns}:", *_indented([*others, *lines]), last]
        edit.before(loop, "\n".join(lines[:-1]))
        edit.replace(loop, last)
        return edit.source()

    def _take(self, statement: ast.stmt) -> None:
        """Write a statement for all turns.

        Raises:
            UnsureError: one turn's may need what another's did, or it is not known.
        """
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._set({name: value})
            case ast.Assign(
                targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)
            ) if len(names) == len(values) and all(
                isinstance(one, ast.Name) for one in names
            ):
                self._set(dict(zip(map(ast.unparse, names), values, strict=True)))
            case ast.AugAssign(target=target, op=op, value=value):
                method = _BINARY.get(type(op), "")
                whole = self._value(ast.parse(ast.unparse(target), mode="eval").body)
                if not whole.is_list or not method:
                    raise UnsureError
                self._lines.append(self._in_place(whole, f"{method}_", [value], []))
            case ast.Expr(
                ast.Call(func=ast.Attribute(value=ast.expr(), attr=name)) as call
            ) if name.endswith("_") and name.removesuffix("_") in _IN_PLACE:
                self._value(call)
            case ast.Assign(
                targets=[ast.Attribute() | ast.Subscript() as target], value=value
            ):
                self._store(target, self._value(value))
            case ast.With(items=items, body=body) if not any(
                item.optional_vars for item in items
            ):
                outside, self._lines = self._lines, []
                for one in body:
                    self._take(one)
                lines = _indented(self._lines)
                head = ", ".join(map(ast.unparse, items))
                self._lines = [*outside, f"with {head}:", *lines]
            case _:
                raise UnsureError

    def _set(self, values: dict[str, ast.expr]) -> None:
        made = {name: self._value(value) for name, value in values.items()}
        if not all(one.is_list for one in made.values()):
            raise UnsureError
        for name, one in made.items():
            every = self._edit.free_name(f"every_{name}")
            self._lines.append(f"{every} = {one.text}")
            self._every[name] = every

    def _store(self, target: ast.expr, made: _Value) -> None:
        """Write that each turn's value is put where the turn has it."""
        names = sorted(loaded(target) & self._every.keys())
        lists, one = [self._every[name] for name in names], self._edit.free_name("one")
        if not names:
            raise UnsureError
        if made.is_list:
            names, lists = [*names, one], [*lists, made.text]
        over = f"zip({', '.join(lists)})" if len(lists) > 1 else lists[0]
        value = one if made.is_list else made.text
        store = f"{ast.unparse(target)} = {value}"
        self._lines.append(f"for {', '.join(names)} in {over}: {store}")

    def _value(self, node: ast.expr) -> _Value:
        """Write a value of all turns."""
        if not loaded(node) & self._every.keys():
            return _Value(ast.unparse(node), False)
        if isinstance(node, LAZY):
            raise UnsureError
        if loaded(node) & self._every.keys() <= self._counts and _is_arithmetic(node):
            return _Value(self._listed(node), True, has_numbers=True)
        match node:
            case ast.Name(id=name):
                return _Value(self._every[name], True)
            case ast.Attribute() | ast.Subscript():
                return _Value(self._listed(node), True)
            case ast.BinOp(left=left, op=op, right=right):
                return self._joined(self._value(left), type(op), self._value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._call("neg", [self._value(operand).text])
            case ast.Call(func=ast.Attribute(attr=name, value=value)) as call:
                return self._called(call, name, value)
        raise UnsureError

    def _listed(self, node: ast.expr) -> str:
        """Write a list of what is a part of what each turn is given."""
        names = sorted(loaded(node) & self._every.keys())
        lists = ", ".join(self._every[name] for name in names)
        text = ast.unparse(node)
        if len(names) == 1:
            return f"[{text} for {names[0]} in {lists}]"
        return f"[{text} for {', '.join(names)} in zip({lists})]"

    def _called(self, call: ast.Call, name: str, value: ast.expr) -> _Value:
        given = list(call.args)
        if isinstance(value, ast.Name) and value.id == "torch":
            value, *given = given
        of = self._value(value)
        base = name.removesuffix("_")
        if not of.is_list:
            return _Value(self._listed(call), True)
        if name == "square" and not given:
            return self._call("pow", [of.text, "2"])
        if name.endswith("_") and base in _IN_PLACE:
            whole = of
            if not of.text.isidentifier():
                every = self._edit.free_name("every")
                self._lines.append(f"{every} = {of.text}")
                whole = _Value(every, True)
            self._lines.append(self._in_place(whole, name, given, call.keywords))
            return whole
        if name in _UNARY | _OTHERS:
            return self._call(name, [of.text, *self._given(name, given, call.keywords)])
        if name.endswith("_"):
            raise UnsureError
        return _Value(self._listed(call), True)

    def _in_place(
        self,
        whole: _Value,
        name: str,
        given: list[ast.expr],
        keywords: list[ast.keyword],
    ) -> str:
        base = name.removesuffix("_")
        taken = self._given(base, given, keywords)
        return self._call(f"{base}_", [whole.text, *taken]).text

    def _given(
        self, name: str, given: list[ast.expr], keywords: list[ast.keyword]
    ) -> list[str]:
        """Write what a function on lists takes beside the first one."""
        taken = [self._value(one) for one in given]
        named = {one.arg: self._value(one.value) for one in keywords}
        if any(one.is_list for one in named.values()):
            raise UnsureError
        factor = named.pop("alpha", None) if name in _SCALED else None
        texts = [one.text for one in taken]
        if factor is not None:
            if not taken or not taken[0].is_list:
                raise UnsureError
            texts.append(f"alpha={factor.text}")
        elif name in ("addcmul", "addcdiv"):
            value = named.pop("value", None)
            texts += [value.text] if value is not None else []
        if named:
            raise UnsureError
        return texts

    def _joined(
        self, left: _Value, operator: type[ast.operator], right: _Value
    ) -> _Value:
        name = _BINARY.get(operator, "")
        if not name:
            raise UnsureError
        if left.is_list and not left.has_numbers:
            return self._call(name, [left.text, right.text])
        if name in _SWAPPED:
            return self._call(name, [right.text, left.text])
        if name == "sub":
            minus = self._call("neg", [right.text])
            return self._call("add", [minus.text, left.text])
        if name == "div":
            over = self._call("reciprocal", [right.text])
            return self._call("mul", [over.text, left.text])
        raise UnsureError

    def _call(self, name: str, given: list[str]) -> _Value:
        self._calls += 1
        function = f"{self._edit.torch}._foreach_{name}"
        return _Value(f"{function}({', '.join(given)})", True)


def _is_arithmetic(node: ast.expr) -> bool:
    kinds = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant)
    parts = (one for one in ast.walk(node) if isinstance(one, ast.expr))
    return all(isinstance(one, kinds) for one in parts)


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
