"""Values of a cell's source that leave the GPU and come back to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import SIMPLE, CellCode, blocks, written
from warpbook_profiler.advice.code.torch_code import steps
from warpbook_profiler.facts.traffic import only_passes

_NUMPY = frozenset("numpy tolist asnumpy".split())
_MAKES = frozenset("tensor as_tensor asarray array from_numpy".split())
#: they compute nothing of an array
_LOOKS = _MAKES | frozenset("float32 float64 append".split())
#: what torch calls otherwise than NumPy
_OF_TORCH = {
    **{"clip": "clamp", "absolute": "abs", "fabs": "abs", "negative": "neg"},
    **{"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"},
    **{"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"},
    **{"degrees": "rad2deg", "radians": "deg2rad", "power": "pow", "mod": "remainder"},
    **{"subtract": "sub", "multiply": "mul", "divide": "div", "not_equal": "ne"},
    **{"greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le"},
}
_COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.FunctionDef)


class Origin(NamedTuple):
    """Where a value left the GPU."""

    #: "x.cpu()"
    node: ast.Call
    #: other code than torch's may compute with it
    is_numpy: bool


class RoundTrip(NamedTuple):
    """A value that comes back."""

    out: Origin
    line: int
    #: "y.cuda()"
    text: str


def round_trips(code: CellCode) -> tuple[RoundTrip, ...]:
    """Follow names from statement to statement, in the order of the source."""
    flow = _Flow()
    flow.go_through(code.tree.body)
    return tuple(flow.round_trips)


def passes_between(code: CellCode, trip: RoundTrip) -> int | None:
    """Count the operators on the host that pass over arrays, as a GPU does, too.

    Returns:
        None where others are, or may be, between the way out and the way back.
    """
    out = trip.out.node
    inside = set(ast.walk(out))
    for block in blocks(code.tree):
        between = [
            one
            for one in block.statements
            if (one.end_lineno or one.lineno) >= out.lineno and one.lineno <= trip.line
        ]
        if not between or out not in ast.walk(between[0]):
            continue
        if not all(isinstance(one, SIMPLE) for one in between):
            continue
        nodes = [part for one in between for part in ast.walk(one)]
        if any(isinstance(part, ast.Subscript) for part in nodes):
            # what it chooses may be of any size
            return None
        called = [
            step
            for one in between
            for step in steps(one)
            if step.node not in inside and not step.is_optional
        ]
        names = [_name(step.node) or min(step.names, default="") for step in called]
        work = [name for name in names if name not in _LOOKS]
        return len(work) if all(only_passes(f"aten::{one}") for one in work) else None
    return None


def _name(node: ast.expr) -> str:
    """Return what is called, as torch has it."""
    function = node.func if isinstance(node, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else ""
    return _OF_TORCH.get(name, name)


class _Flow:
    def __init__(self) -> None:
        self.round_trips: list[RoundTrip] = []
        #: names whose values are on the host, and have been on the GPU
        self._on_host: dict[str, Origin] = {}

    def go_through(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, _COMPOUND):
                for head in ("iter", "test"):
                    part = getattr(statement, head, None)
                    if part is not None:
                        self._origin(part)
                for name in ("body", "orelse", "finalbody"):
                    self.go_through(getattr(statement, name, []))
                continue
            value = getattr(statement, "value", None)
            if not isinstance(value, ast.expr):
                continue
            origin = self._origin(value)
            for name in _targets(statement):
                if origin is None:
                    self._on_host.pop(name, None)
                else:
                    self._on_host[name] = origin

    def _origin(self, node: ast.expr) -> Origin | None:
        """Tell where a value on the host left the GPU; None for one on the GPU."""
        if isinstance(node, ast.Name):
            return self._on_host.get(node.id)
        inner = [self._origin(part) for part in _operands(node)]
        origin = next((known for known in inner if known is not None), None)
        if not isinstance(node, ast.Call):
            return origin
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        if name in _NUMPY or name == "cpu" or (name == "to" and _names_cpu(node)):
            is_numpy = name in _NUMPY or (origin is not None and origin.is_numpy)
            before = origin or Origin(node, False)
            return before._replace(is_numpy=is_numpy)
        if origin is not None and _is_back(node, name):
            self.round_trips.append(RoundTrip(origin, node.lineno, written(node)))
            return None
        return origin


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.keyword):
            yield part.value
        elif isinstance(part, ast.expr):
            yield part


def _targets(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Name):
                    yield part.id
    elif isinstance(statement, ast.AnnAssign) and isinstance(
        statement.target, ast.Name
    ):
        yield statement.target.id


def _names_cpu(call: ast.Call) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(
        isinstance(value, ast.Constant) and value.value == "cpu" for value in values
    )


def _is_back(call: ast.Call, name: str) -> bool:
    if name == "cuda":
        return True
    if name == "to":
        # to a dtype is no copy to the GPU
        text = " ".join(ast.unparse(arg) for arg in call.args)
        is_dtype = text.startswith(("torch.float", "torch.bfloat", "torch.int"))
        return not is_dtype and bool(call.args or call.keywords)
    return name in _MAKES and any(keyword.arg == "device" for keyword in call.keywords)
