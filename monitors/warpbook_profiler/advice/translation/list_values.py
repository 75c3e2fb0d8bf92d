"""What turns of a loop compute with tensors, as calls on lists of all turns'."""

from __future__ import annotations

import ast
from typing import NamedTuple

from warpbook_profiler.advice.code.operations import operation, squared
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import BINARY
from warpbook_profiler.advice.rewriting.turns import LAZY, UnsureError, loaded

#: that may change their sides
_SWAPPED = frozenset("add mul".split())
#: methods, and functions of torch, of one tensor and of one with others
_UNARY = frozenset("abs exp log neg reciprocal rsqrt sigmoid sign sqrt tanh".split())
_OTHERS = frozenset(
    "add sub mul div pow addcmul addcdiv lerp clamp_min clamp_max".split()
)
METHODS = _OTHERS | _UNARY | {"zero", "copy"}
IN_PLACE_OPERATORS = {kind: name for kind, name in BINARY.items() if name in _OTHERS}
#: the order of a norm of all elements
_SECOND = ("2", "2.0")
#: functions that take `alpha` with a list
_SCALED = frozenset("add sub".split())


class ListValue(NamedTuple):
    """Code for a value: a list of all turns', or one that is the same in all."""

    text: str
    is_list: bool
    #: of numbers of Python
    has_numbers: bool = False


class ListValues:
    """Lists of what each turn has, and code that makes more of them."""

    def __init__(self, edit: SourceEdit, counts: set[str]) -> None:
        """Make lists for an edit.

        Args:
            edit: of the cell.
            counts: names that count turns.
        """
        self._edit, self._counts = edit, counts
        self.lines = list[str]()
        #: by names that turns set, or are given, the lists of what they are in all
        self.every: dict[str, str] = {}
        #: of functions on lists
        self.calls = 0
        self.is_update = False

    def value(self, node: ast.expr) -> ListValue:
        """Write a value of all turns.

        Raises:
            UnsureError: it is not known.
        """
        if not loaded(node) & self.every.keys():
            return ListValue(ast.unparse(node), False)
        if isinstance(node, LAZY):
            raise UnsureError
        if loaded(node) & self.every.keys() <= self._counts and _is_arithmetic(node):
            return ListValue(self._listed(node), True, has_numbers=True)
        match node:
            case ast.Name(id=name):
                return ListValue(self.every[name], True)
            case ast.Attribute() | ast.Subscript():
                return ListValue(self._listed(node), True)
            case ast.BinOp(left=left, op=op, right=right):
                return self._joined(self.value(left), type(op), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._call("neg", [self.value(operand).text])
            case ast.Call(func=ast.Attribute(attr=name, value=value)) as call:
                return self._called(call, name, value)
        raise UnsureError

    def _listed(self, node: ast.expr) -> str:
        """Write a list of what is a part of what each turn is given."""
        names = sorted(loaded(node) & self.every.keys())
        lists = ", ".join(self.every[name] for name in names)
        text = ast.unparse(node)
        if len(names) == 1:
            return f"[{text} for {names[0]} in {lists}]"
        return f"[{text} for {', '.join(names)} in zip({lists})]"

    def _called(self, call: ast.Call, name: str, value: ast.expr) -> ListValue:
        found = operation(call)
        if found is None or not found.operands:
            raise UnsureError
        root = squared(found.operands[0]) if name == "sum" else None
        value, *given = found.operands
        of = self.value(value if root is None else root)
        base = name.removesuffix("_")
        if not of.is_list:
            return ListValue(self._listed(call), True)
        orders = map(ast.unparse, [*given, *found.keywords.values()])
        if root is not None and not (given or found.keywords):
            return self._call("pow", [self._call("norm", [of.text]).text, "2"])
        if found.name == "norm" and all(one in _SECOND for one in orders):
            return self._call("norm", [of.text])
        if name == "square" and not given:
            return self._call("pow", [of.text, "2"])
        if name.endswith("_") and base in METHODS:
            whole = of
            if not of.text.isidentifier():
                every = self._edit.free_name("every")
                self.lines.append(f"{every} = {of.text}")
                whole = ListValue(every, True)
            self.lines.append(self.in_place(whole, name, given, call.keywords))
            return whole
        if name in _UNARY | _OTHERS:
            return self._call(name, [of.text, *self._given(name, given, call.keywords)])
        if name.endswith("_"):
            raise UnsureError
        return ListValue(self._listed(call), True)

    def in_place(
        self,
        whole: ListValue,
        name: str,
        given: list[ast.expr],
        keywords: list[ast.keyword],
    ) -> str:
        """Write that all turns' tensors are changed.

        Raises:
            UnsureError: it is not known.
        """
        self.is_update = True
        base = name.removesuffix("_")
        taken = self._given(base, given, keywords)
        return self._call(f"{base}_", [whole.text, *taken]).text

    def _given(
        self, name: str, given: list[ast.expr], keywords: list[ast.keyword]
    ) -> list[str]:
        """Write what a function on lists takes beside the first one."""
        taken = [self.value(one) for one in given]
        named = {one.arg: self.value(one.value) for one in keywords}
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
        self, left: ListValue, operator: type[ast.operator], right: ListValue
    ) -> ListValue:
        name = IN_PLACE_OPERATORS.get(operator, "")
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

    def _call(self, name: str, given: list[str]) -> ListValue:
        self.calls += 1
        function = f"{self._edit.torch}._foreach_{name}"
        return ListValue(f"{function}({', '.join(given)})", True)


def _is_arithmetic(node: ast.expr) -> bool:
    kinds = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant)
    parts = (one for one in ast.walk(node) if isinstance(one, ast.expr))
    return all(isinstance(one, kinds) for one in parts)
