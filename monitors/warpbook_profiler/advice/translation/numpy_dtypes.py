"""Of which dtypes the values are of code in which torch stands in NumPy's place."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpbook_profiler.advice.translation.numpy_functions import (
    NEW,
    function_of,
    method_name,
)

_CASTS = ("float", "half", "bfloat16")
#: of torch: they may leave no axis
_REDUCE = frozenset(
    "sum mean amax amin max min prod nansum nanmean std var norm det einsum "
    "matmul".split()
)


@dataclass
class Dtypes:
    """Of the names of an edit's tensors, what is known of their dtypes."""

    #: NumPy's version says of which dtype they are
    open_names: set[str] = field(default_factory=set)
    #: where their dtypes come from: casts, or the tensors that are copied
    origins: dict[str, set[str]] = field(default_factory=dict)
    #: they may be numbers in NumPy, and tensors without an axis in torch
    numbers: set[str] = field(default_factory=set)

    def note(self, name: str, new: ast.expr) -> None:
        """Note what an assignment gives a name."""
        is_open, origins = self.is_open(new), self.origins_of(new)
        is_number = self.may_be_number(new)
        self.forget(name)
        self.origins[name] = origins
        self.open_names |= {name} if is_open else set()
        self.numbers |= {name} if is_number else set()

    def forget(self, name: str) -> None:
        """Note that nothing is known of a name."""
        self.origins.pop(name, None)
        self.open_names.discard(name)
        self.numbers.discard(name)

    def origins_of(self, new: ast.AST) -> set[str]:
        """Return where the dtype of an expression comes from."""
        match new:
            case ast.Name(id=name):
                return self.origins.get(name, set())
            case ast.Attribute(attr="shape" | "ndim" | "device"):
                return set()
            case ast.Call(func=ast.Name() | ast.Attribute(attr="numel")):
                return set()
            case ast.Call(func=ast.Attribute(attr="detach")):
                return {"copied"}
            case ast.Call() if named := _dtypes(new):
                return {named[-1]}
        parts = ast.iter_child_nodes(new)
        return set[str]().union(*(self.origins_of(one) for one in parts))

    def may_be_number(self, new: ast.AST) -> bool:
        """Tell whether a tensor may have no axis: it has no say in torch's dtypes."""
        match new:
            case ast.Name(id=name):
                return name in self.numbers
            case ast.Subscript(value=value, slice=ast.Constant() | ast.UnaryOp()):
                return ast.unparse(new.slice) != "None" or self.may_be_number(value)
            case ast.Subscript(slice=ast.Tuple(elts=parts)):
                return not any(isinstance(one, ast.Slice) for one in parts)
            case ast.Subscript(slice=ast.Name() | ast.BinOp() | ast.Attribute()):
                return True
            case ast.Call(func=ast.Attribute(attr=name), keywords=keywords) if (
                name in _REDUCE
            ):
                return "keepdim" not in {one.arg for one in keywords}
            case ast.Call(args=[ast.Tuple(elts=[])]):
                return True
        inner = [*filter(self.origins_of, ast.iter_child_nodes(new))]
        return bool(inner) and all(map(self.may_be_number, inner))

    def are_several(self, new: ast.AST) -> bool:
        """Tell whether an expression may be of values of several dtypes."""
        return len(self.origins_of(new)) > 1

    def is_mixed(self, parts: Sequence[ast.expr]) -> bool:
        """Tell whether parts are of other dtypes, and one may have no axis."""
        tensors = [one for one in parts if self.origins_of(one)]
        origins = set[str]().union(*map(self.origins_of, tensors))
        return len(origins) > 1 and any(map(self.may_be_number, tensors))

    def is_open(self, new: ast.AST) -> bool:
        """Tell whether NumPy's version says of which dtype is what code stands for.

        A function of numbers gives one of float64, which widens arrays of some, as
        does a number that is taken of an array.
        """
        match new:
            case ast.Name(id=name):
                return name in self.open_names
            case ast.BinOp(left=left, right=right) if self.is_mixed([left, right]):
                return True
            case ast.Call(func=function):
                if isinstance(function, ast.Name) or _is_cast(new):
                    return False
                module = ast.unparse(function).rpartition(".")[0]
                if function_of(new) or module == "torch.fft":
                    return True
                if self.is_mixed(new.args):
                    return True
        return any(map(self.is_open, ast.iter_child_nodes(new)))


def _dtypes(call: ast.Call) -> list[str]:
    """Return the dtype that a call casts to, or makes a tensor of."""
    name = method_name(call)
    given = [*call.args, *(one.value for one in call.keywords)]
    named = [text for text in map(ast.unparse, given) if _is_dtype(text)]
    if name in _CASTS:
        return [name]
    return named if name in ("to", *NEW) else []


def _is_cast(call: ast.Call) -> bool:
    """Tell whether a call gives a tensor of one dtype, whatever it is given."""
    return bool(_dtypes(call)) and method_name(call) not in NEW


def _is_dtype(text: str) -> bool:
    return text.startswith("torch.") and "(" not in text
