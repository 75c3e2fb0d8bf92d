"""Tensors of numbers and ranges that a source makes on the host, and where they go."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.torch_code import is_number
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.facts.traffic import only_passes

#: what makes a tensor without an input; numbers drawn at random come out otherwise
FIXED = frozenset(
    "zeros ones full arange linspace logspace eye tril_indices triu_indices fftfreq "
    "rfftfreq fft_fftfreq fft_rfftfreq".split()
)
RANDOM = frozenset("randn rand randint randperm normal".split())
#: their last bits are others on the GPU
WINDOWS = frozenset(
    f"{name}_window" for name in "hann hamming blackman bartlett kaiser".split()
)
_CASTS = frozenset("to bool float half double long int type bfloat16".split())
#: they look at tensors another way
LOOKS = frozenset("view reshape unsqueeze expand detach".split())
#: they join several tensors, or make one like another
_TAKES = frozenset(
    "meshgrid stack cat hstack vstack outer broadcast_to repeat zeros_like ones_like "
    "transpose permute flatten squeeze contiguous".split()
)
#: they compute of what they are given alone, and no pass over elements does it
COMPUTES = frozenset(
    "polar complex view_as_complex roll flip tril triu tile cumsum cumprod matmul mm "
    "einsum fftshift ifftshift fft_fftshift fft_ifftshift".split()
)
_KNOWN = _CASTS | LOOKS | _TAKES | COMPUTES
_LOOPS = (ast.For, ast.While)
Calls = frozenset[ast.Call]
_NONE: Calls = frozenset()


class MadeValues:
    """Follows tensors that the host fills through a source, statement by statement."""

    def __init__(self, flow: ValueFlow, code: CellCode) -> None:
        self._flow = flow
        #: the calls that a name's value is of alone, beside numbers
        self._made: dict[str, Calls] = {}
        self._moves: dict[ast.Call, list[ast.Call]] = {}
        self._kept: set[ast.Call] = set()
        self._joined: list[Calls] = []
        made = [call.node for call in code.calls(*FIXED, *RANDOM, *WINDOWS)]
        #: names of numbers: sizes and ends
        self._numbers = {
            one.id for call in made for one in call.args if isinstance(one, ast.Name)
        }
        self.made = [call for call in made if not _names_device(call)]
        #: names in arithmetic with them that may be tensors
        self.has_unknown = self.has_pairs = False
        self._go_through(code.tree.body)
        for _ in self._joined:
            for group in self._joined:
                self._kept |= group if group & self._kept else set()

    @property
    def moves(self) -> dict[ast.Call, list[ast.Call]]:
        """Return those that only go to the GPU, in order, and what moves them."""
        in_order = [call for call in self.made if call in self._moves]
        return {call: self._moves[call] for call in in_order if call not in self._kept}

    def joined(self, call: ast.Call) -> set[ast.Call]:
        """Return what is in one tensor with what a call makes."""
        return {call}.union(*(one for one in self._joined if call in one))

    def _go_through(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
                    outside, self._made = self._made, {}
                    self._go_through(body)
                    self._made = outside
                case ast.Assign(targets=[target], value=value):
                    self._set(target, value)
                case ast.AugAssign(target=ast.Name() as name, value=value):
                    joined = self._pair(ast.Name(name.id, ast.Load()), value)
                    self._bind(name.id, joined)
                case _:
                    self._others(statement)

    def _others(self, statement: ast.stmt) -> None:
        """Go through a statement of any kind; what it takes stays on the host."""
        for _, value in ast.iter_fields(statement):
            parts = value if isinstance(value, list) else [value]
            for part in parts:
                if isinstance(part, ast.expr | ast.withitem):
                    self._keep(part)
            inner = [part for part in parts if isinstance(part, ast.stmt)]
            # a turn may take what the one before it made
            for _ in range(1 + isinstance(statement, _LOOPS) * bool(inner)):
                self._go_through(inner)

    def _set(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            if len(target.elts) == len(value.elts):
                found = [self._of(one) for one in value.elts]
                for one, calls in zip(target.elts, found, strict=True):
                    self._place(one, calls)
                return
        self._place(target, self._of(value))

    def _place(self, target: ast.expr, calls: Calls) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, calls)
            case ast.Tuple(elts=names) if all(isinstance(it, ast.Name) for it in names):
                for one in names:
                    self._bind(ast.unparse(one), calls)
            case _:
                self._kept |= calls
                self._keep(target)

    def _bind(self, name: str, calls: Calls) -> None:
        self._made.pop(name, None)
        if calls:
            self._made[name] = calls

    def _keep(self, node: ast.AST) -> None:
        """Note what other code than that which is known takes."""
        if isinstance(node, ast.expr):
            self._kept |= self._of(node)
        else:
            for part in ast.iter_child_nodes(node):
                self._keep(part)

    def _of(self, node: ast.expr) -> Calls:
        """Return the calls that a value is made of; none for any other value."""
        match node:
            case ast.Name(id=name):
                return self._made.get(name, _NONE)
            case ast.UnaryOp(operand=value):
                return self._of(value)
            case ast.BinOp(left=left, right=right):
                return self._pair(left, right)
            case ast.Compare(left=left, comparators=[right]):
                return self._pair(left, right)
            case ast.Subscript(value=value, slice=index):
                self._keep(index)
                return self._of(value)
            case ast.Attribute(value=value, attr=name):
                calls = self._of(value)
                return calls if name in ("T", "mT") else _NONE
            case ast.Call():
                return self._of_call(node)
        for part in ast.iter_child_nodes(node):
            self._keep(part)
        return _NONE

    def _moves_on(self, move: ast.Call) -> bool:
        """Tell whether what is moved is moved again: a name may be a dtype's."""
        above = [self._flow.parent(one) for one in self._flow.uses(move) or ()]
        calls = [self._flow.parent(one) for one in above if one and _is_move(one)]
        return any(
            isinstance(one, ast.Call) and device_of(self._flow, one) for one in calls
        )

    def _pair(self, left: ast.expr, right: ast.expr) -> Calls:
        one, two = self._of(left), self._of(right)
        if one and two:
            self.has_pairs = True
            return self._join(one | two)
        other = right if one else left
        if (one or two) and not self._is_number(other):
            self.has_unknown = True
        return one or two

    def _is_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._numbers
            case ast.BinOp(left=left, right=right):
                return self._is_number(left) and self._is_number(right)
            case ast.UnaryOp(operand=value):
                return self._is_number(value)
        return is_number(node)

    def _join(self, calls: Calls) -> Calls:
        self._joined += [calls] if len(calls) > 1 else []
        return calls

    def _of_call(self, call: ast.Call) -> Calls:
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        others = [one.value for one in call.keywords]
        if call in self.made:
            for part in (*call.args, *others):
                self._keep(part)
            return frozenset({call})
        if not isinstance(function, ast.Attribute) or not name:
            for part in (*call.args, *others):
                self._keep(part)
            return _NONE
        base = self._of(function.value)
        if base and _is_move(function):
            device = device_of(self._flow, call)
            if device and not self._moves_on(call):
                for one in base:
                    self._moves.setdefault(one, [])
                    if call not in self._moves[one]:
                        self._moves[one].append(call)
                return _NONE
        given = call.args
        if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple):
            given = given[0].elts
        elif given and isinstance(given[0], ast.List | ast.Tuple):
            given = [*given[0].elts, *given[1:]]
        parts = [self._of(one) for one in (*given, *others)]
        found = self._join(base.union(*parts))
        is_known = name in _CASTS | LOOKS | _TAKES | COMPUTES or only_passes(
            f"aten::{name}"
        )
        unknown = [
            one
            for one, calls in zip((*given, *others), parts, strict=True)
            if not (calls or self._is_number(one) or _is_dtype(one))
        ]
        if not found or (is_known and not unknown):
            return found
        self._kept |= found
        return _NONE


def _is_move(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("to", "cuda")


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch.")


def device_of(flow: ValueFlow, move: ast.Call) -> str:
    """Return the device that `.to(…)` names; empty where that may be another thing."""
    if isinstance(move.func, ast.Attribute) and move.func.attr == "cuda":
        return "'cuda'" if not move.args else ""
    others = [one.arg for one in move.keywords if one.arg != "non_blocking"]
    if len(move.args) != 1 or others:
        return ""
    given = move.args[0]
    value = flow.value(given)
    match value:
        case ast.Constant(value=str(name)) if name.startswith("cuda"):
            return ast.unparse(given)
        case ast.Attribute(attr="device"):
            return ast.unparse(given)
        case ast.Name(id=name) if not flow.settings(name):
            return ast.unparse(given)
        case ast.Call(func=ast.Attribute(attr="device")):
            return ast.unparse(given)
    return ""


def _names_device(call: ast.Call) -> bool:
    return any(one.arg in ("device", "generator") for one in call.keywords)
