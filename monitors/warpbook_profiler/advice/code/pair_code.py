"""Sums over all pairs of two tensors' rows in a source, and what gives the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.operations import Operation, operation, squared
from warpbook_profiler.advice.code.reaching import reached
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow

Dims = tuple[int, ...]

_LETTERS = "abcdefghij"
#: sums of a source that are looked at, and products within one another
_MOST_SUMS, _MOST_LEVELS = 100, 5
#: axes of a sum, and the order of a norm
_KEYWORDS = frozenset("dim axis keepdim p ord".split())


class Shape(NamedTuple):
    """The sizes of a broadcast, as a trace has them."""

    first: Dims
    second: Dims
    #: of all pairs
    whole: Dims
    #: axes
    summed: tuple[int, ...]
    #: of what all pairs are multiplied with, and whether it is of another dtype
    others: tuple[tuple[Dims, bool], ...] = ()

    @property
    def kept(self) -> str:
        """Write the axes of the result as einsum does."""
        axes = range(len(self.whole))
        return "".join(_LETTERS[at] for at in axes if at not in self.summed)


class PairSum(NamedTuple):
    """A sum in the source, and the pairs that it is of."""

    call: ast.Call
    name: str
    #: those that are broadcast come first
    factors: tuple[ast.expr, ...]
    is_squared: bool
    #: what sets names that only it reads
    gone: tuple[ast.stmt, ...]


def pair_sums(code: CellCode, is_product: bool) -> Iterator[PairSum]:
    """Find the sums of products or squared differences of broadcast tensors."""
    flow = ValueFlow(code)
    for call in code.calls("sum", "mean", "norm", "vector_norm")[:_MOST_SUMS]:
        found = operation(call.node)
        if found is None or not found.operands:
            continue
        name, gone = found.name, list[ast.stmt]()
        if is_product and name == "norm":
            continue
        node = _only_use(flow, found.operands[0], gone)
        is_squared = not is_product and name != "norm"
        if is_squared and node is not None:
            inner = squared(node)
            node = _only_use(flow, inner, gone) if inner is not None else None
        if node is None:
            continue
        factors = tuple(_factors(flow, node, "mul" if is_product else "sub", gone))
        if len(factors) > 1 and any(_is_broadcast(flow, one) for one in factors):
            yield PairSum(call.node, name, factors, is_squared, tuple(gone))


def has_pairs(code: CellCode, is_product: bool) -> bool:
    """Tell whether a source has pairs at all."""
    flow, name = ValueFlow(code), "mul" if is_product else "sub"
    for node in ast.walk(code.tree):
        found = operation(node)
        if found is not None and found.name == name and len(found.operands) == 2:
            if all(_is_broadcast(flow, one) for one in found.operands):
                return True
    return False


def _factors(
    flow: ValueFlow,
    node: ast.expr,
    name: str,
    gone: list[ast.stmt],
    levels: int = _MOST_LEVELS,
) -> Iterator[ast.expr]:
    """Give what is multiplied, in the order in which it is; or subtracted."""
    match operation(node):
        case Operation(found, [one, two], keywords) if found == name and not keywords:
            pass
        case _:
            return
    if name == "mul" and levels:
        for side, other in ((one, two), (two, one)):
            taken = list[ast.stmt]()
            inner = _only_use(flow, side, taken)
            if inner is None:
                continue
            more = list(_factors(flow, inner, name, taken, levels - 1))
            if len(more) > 1 and any(_is_broadcast(flow, part) for part in more):
                gone += taken
                yield from (*more, other)
                return
    yield one
    yield two


def _only_use(flow: ValueFlow, node: ast.expr, gone: list[ast.stmt]) -> ast.expr | None:
    """Return what an expression stands for; None where others read its name, too.

    Args:
        flow: of the source.
        node: the expression; `d * d` reads its name twice, and may.
        gone: takes the statement that sets the name, which nobody needs then.
    """
    if not isinstance(node, ast.Name):
        return node
    before = [one for one in flow.sets(node.id) if one.lineno < node.lineno]
    target = max(before, key=lambda one: one.lineno, default=None)
    setting = None if target is None else flow.parent(target)
    if target is None or not isinstance(setting, ast.Assign):
        return None
    reads = reached(flow, target) or []
    is_only = len({flow.statement(one) for one in reads}) == 1 and node in reads
    if not is_only or setting.targets != [target]:
        return None
    gone.append(setting)
    return setting.value


def _is_broadcast(flow: ValueFlow, node: ast.expr) -> bool:
    return _added(flow.value(node)) is not None


def _added(node: ast.expr) -> ast.expr | None:
    """Return what axes of one element are added to, by an index or by name."""
    match node:
        case ast.Subscript(value=inner, slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            texts = [ast.unparse(part) for part in parts]
            if "None" in texts and set(texts) <= {"None", ":", "..."}:
                return inner
    found = operation(node)
    match found:
        case Operation("unsqueeze" | "view" | "reshape", [inner, *_]):
            return inner
        case Operation("mul" | "div" | "sub" | "add", [one, two]):
            sides = [_added(one), _added(two)]
            return node if any(sides) else None
    return None


def written(code: CellCode, sums: list[PairSum], shape: Shape) -> str:
    """Write the sum anew, and leave out what held all pairs; may be empty.

    Where sums are several, it must be sure which of them the shape is of.
    """
    texts = [text for one in sums if (text := _written(code, one, shape))]
    return texts[0] if len(texts) == 1 else ""


def summed_einsum(code: CellCode) -> str:
    """Write the sum of what einsum gives as a shorter einsum; may be empty."""
    edit, flow = SourceEdit(code), ValueFlow(code)
    for call in code.calls("sum")[:_MOST_SUMS]:
        gone, found = list[ast.stmt](), operation(call.node)
        node = _only_use(flow, found.operands[0], gone) if found else None
        if found is None:
            continue
        axes = [*found.operands[1:], *found.keywords.values()]
        match node, axes:
            case (
                ast.Call(
                    func=ast.Attribute(attr="einsum"),
                    args=[ast.Constant(value=str(equation)) as first, *_],
                ),
                [axis],
            ) if "->" in equation and "." not in equation:
                pass
            case _:
                continue
        if not found.keywords.keys() <= {"dim", "axis"}:
            continue
        given, _, kept = equation.partition("->")
        number, letters = ast.unparse(axis), [*kept.strip()]
        if number not in {str(at) for at in range(-len(letters), len(letters))}:
            continue
        del letters[int(number)]
        text = edit.text(node).replace(
            edit.text(first), repr(f"{given}->{''.join(letters)}"), 1
        )
        edit.replace(call.node, text)
        for statement in gone:
            edit.delete(statement)
    return edit.source()


def _written(code: CellCode, one: PairSum, shape: Shape) -> str:
    edit, flow, rank = SourceEdit(code), ValueFlow(code), len(shape.whole)
    found = operation(one.call)
    is_product = not one.is_squared and one.name != "norm"
    dims = (shape.first, shape.second, *(other for other, _ in shape.others))
    if found is None or len(dims) != len(one.factors) or not _is_of(found, shape):
        return ""
    texts, axes = list[str](), list[str]()
    for factor, sizes in zip(one.factors, dims, strict=True):
        text, names = _operand(edit, flow, factor, sizes)
        if not text or not all(flow.is_same(it, factor, one.call) for it in names):
            return ""
        texts.append(text)
        padded = enumerate((1,) * (rank - len(sizes)) + sizes)
        axes.append("".join(_LETTERS[at] for at, size in padded if size > 1))
    whole: ast.expr = one.call
    if is_product:
        for at, (_, is_cast) in enumerate(shape.others, 2):
            texts[at] += f".to({texts[0]}.dtype)" if is_cast else ""
        order = _order(axes)
        operands = ", ".join(texts[at] for at in order)
        equation = ",".join(axes[at] for at in order)
        text = f"{edit.torch}.einsum('{equation}->{shape.kept}', {operands})"
    else:
        text = _distances(edit, texts, axes, shape)
        root = _root(flow, one.call) if one.is_squared else None
        text += ".square()" if one.is_squared and root is None and text else ""
        whole = root or whole
    if not text:
        return ""
    keepdim = found.keywords.get("keepdim")
    if keepdim is not None and ast.unparse(keepdim) == "True":
        text += "".join(f".unsqueeze({at})" for at in shape.summed)
    if one.name == "mean":
        if whole is not one.call:
            return ""
        for at in shape.summed:
            text += f" / {texts[0]}.shape[{axes[0].index(_LETTERS[at])}]"
        text = f"({text})"
    for statement in one.gone:
        edit.delete(statement)
    edit.replace(whole, text)
    return edit.source()


def _is_of(found: Operation, shape: Shape) -> bool:
    """Tell whether a sum is over the axes that the trace has, and nothing else."""
    keywords = dict(found.keywords)
    numbers = [keywords.pop(one) for one in ("p", "ord") if one in keywords]
    given = found.operands[1:]
    if found.name == "norm" and len(given) > 1:
        numbers.append(given.pop(0))
    axis = keywords.get("dim", keywords.get("axis"))
    given += [axis] if axis is not None else []
    if len(given) != 1 or not keywords.keys() <= _KEYWORDS:
        return False
    try:
        axes = ast.literal_eval(given[0])
        orders = [ast.literal_eval(one) for one in numbers]
    except ValueError:
        return False
    axes = axes if isinstance(axes, tuple | list) else (axes,)
    if not all(type(one) is int for one in axes):
        return False
    rank = len(shape.whole)
    return sorted(one % rank for one in axes) == [*shape.summed] and all(
        one == 2 for one in orders
    )


def _operand(
    edit: SourceEdit, flow: ValueFlow, factor: ast.expr, sizes: Dims
) -> tuple[str, set[str]]:
    """Write a factor without its axes of one element, and what names it reads."""
    node = flow.value(factor)
    if node is not factor and flow.function(node) is not flow.function(factor):
        node = factor
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    ones = [at for at, size in enumerate(sizes) if size == 1]
    match node:
        case ast.Subscript(value=inner, slice=index) if _added(node) is inner:
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            texts = [ast.unparse(part) for part in parts]
            if "..." in texts:
                at = texts.index("...")
                missing = len(sizes) - len(texts) + 1
                texts[at : at + 1] = [":"] * missing
            texts += [":"] * (len(sizes) - len(texts))
            if [at for at, text in enumerate(texts) if text == "None"] != ones:
                return "", names
            return edit.operand(inner), names
    match operation(node):
        case Operation("unsqueeze", [inner, place]):
            try:
                at = ast.literal_eval(place)
            except ValueError:
                return "", names
            if type(at) is int and [at % len(sizes)] == ones:
                return edit.operand(inner), names
    squeezed = "".join(f".squeeze({at})" for at in reversed(ones))
    return f"{edit.operand(node)}{squeezed}", names


def _order(axes: list[str]) -> list[int]:
    """Return factors in an order in which no product of two has all pairs."""
    order = [0, 1]
    for at in range(2, len(axes)):
        # beside the one that has its axes
        is_of_first = set(axes[at]) <= set(axes[0])
        order.insert(0 if is_of_first else len(order), at)
    return order


def _distances(
    edit: SourceEdit, texts: list[str], axes: list[str], shape: Shape
) -> str:
    """Write the distances of rows; the last axis is theirs."""
    last = len(shape.whole) - 1
    if shape.summed != (last,) or shape.others:
        return ""
    pairs = [one[:-1] for one in axes if one.endswith(_LETTERS[last])]
    if len(pairs) != 2 or not all(pairs):
        return ""
    one, two = pairs
    if one[:-1] != two[:-1] or one == two:
        return ""
    first, second = texts if one < two else reversed(texts)
    return f"{edit.torch}.cdist({first}, {second})"


def _root(flow: ValueFlow, call: ast.Call) -> ast.expr | None:
    """Return the square root of a sum that is taken where it is."""
    match flow.parent(call):
        case ast.Attribute(attr="sqrt") as function:
            above = flow.parent(function)
            return above if isinstance(above, ast.Call) and not above.args else None
        case ast.Call(func=ast.Attribute(attr="sqrt"), args=[_]) as above:
            return above
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=0.5)) as above:
            return above if left is call else None
    return None
