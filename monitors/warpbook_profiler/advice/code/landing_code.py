"""Results that a cell keeps on the host, copied there without a wait for each.

They go to memory that is pinned, and are waited for where the turns are over. Memory
that the cell fills with rows is pinned itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode, bound_names
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow

_GATHERS = frozenset("list tuple dict".split())
_MAKES = frozenset("empty zeros".split())
#: dtypes that NumPy and torch call the same
_DTYPES = frozenset(
    "float16 float32 float64 int8 int16 int32 int64 uint8 bool complex64".split()
)
_MOST_CALLS = 20


def landed(code: CellCode, result: ast.expr, whole: ast.expr, copy: ast.expr) -> str:
    """Write that a result goes to pinned memory, and is waited for after all turns.

    Args:
        code: of the cell.
        result: on the GPU.
        whole: what is made of it on the host, "result.cpu().numpy()".
        copy: the part of that which copies, or a call of `copy_` with the result.

    Returns:
        Nothing where somebody may look at it before.
    """
    edit, flow = SourceEdit(code), ValueFlow(code)
    row = _row(edit, flow, result, flow.statement(whole))
    if row is not None:
        edit.after(row, f"{edit.torch}.cuda.synchronize()")
        return edit.source()
    ends = dict.fromkeys(_ends(flow, whole, _MOST_CALLS))
    if not ends or None in ends or result is whole:
        return ""
    edit.replace(copy, f'{edit.operand(result)}.to("cpu", non_blocking=True)')
    for end in ends:
        if end is not None:
            edit.after(end, f"{edit.torch}.cuda.synchronize()")
    return edit.source()


def _ends(flow: ValueFlow, whole: ast.expr, most: int) -> Iterator[ast.stmt | None]:
    """Give the statements after which somebody may look at a value.

    None stands for an unknown statement.
    """
    statement, above = flow.statement(whole), flow.parent(whole)
    if isinstance(statement, ast.Return) and statement.value is whole:
        function = flow.function(whole)
        calls = list(_calls(flow, function)) if most else []
        for call in calls:
            if call is None:
                yield None
            else:
                yield from _ends(flow, call, most - len(calls))
        if not calls:
            yield None
        return
    match above:
        case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
            yield _made(flow, above, statement)
        case ast.Call(func=ast.Attribute(attr="append", value=kept)) if _root(kept):
            yield _loop(flow, statement, _root(kept))
        case ast.List() if isinstance(statement, ast.AugAssign) and (
            statement.value is above and isinstance(statement.target, ast.Name)
        ):
            yield _loop(flow, statement, statement.target.id)
        case ast.Assign(targets=[ast.Name(id=name)]) if (
            _setting(flow, name, above) is above
        ):
            functions = {one: flow.function(one) for one in flow.reads(name)}
            reads = [
                one
                for one, function in functions.items()
                if function is flow.function(above)
                or function is None
                or name not in bound_names(function)
            ]
            if len(reads) == 1:
                yield from _ends(flow, reads[0], most)
            else:
                yield None
        case ast.Call(func=ast.Name(id="map")):
            yield _made(flow, above, statement)
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as target]) if (
            _is_of_objects(flow, name, statement)
            and not isinstance(target.slice, ast.Slice)
        ):
            yield _loop(flow, statement, name)
        case _:
            yield None


def _root(node: ast.expr) -> str:
    """Return the name that a list is, or is an attribute of; may be empty."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _calls(flow: ValueFlow, function: ast.AST | None) -> Iterator[ast.expr | None]:
    """Give the calls of a function of the cell, or of its turns by `map`."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list[1:]:
        yield None
        return
    for read in flow.reads(function.name):
        match flow.parent(read):
            case ast.Call(func=called) as call if called is read:
                yield call
            case ast.Call(func=ast.Name(id="map"), args=[first, *_]) if first is read:
                yield read
            case _:
                yield None


def _made(
    flow: ValueFlow, made: ast.expr, statement: ast.stmt | None
) -> ast.stmt | None:
    """Give the statement that only makes a list or dictionary, and shows it nobody."""
    above = flow.parent(made)
    if isinstance(made, ast.GeneratorExp | ast.Call):
        match above:
            case ast.Call(func=ast.Name(id=name), args=[one]) if (
                name in _GATHERS and one is made
            ):
                above = flow.parent(above)
            case _:
                return None
    return statement if isinstance(above, ast.Assign) and above is statement else None


def _loop(flow: ValueFlow, statement: ast.stmt | None, name: str) -> ast.stmt | None:
    """Give the loop around a statement, in which a name is used in that alone."""
    loop = flow.loop(statement) if statement is not None else None
    if not isinstance(loop, ast.For | ast.While):
        return None
    tests = [loop.test] if isinstance(loop, ast.While) else []
    inside: list[ast.AST] = [*loop.body, *loop.orelse, *tests]
    if sum(uses(one, name) for one in inside) != 1:
        return None
    own = flow.function(loop)
    # a function that a turn calls may read what the cell's own name holds
    elsewhere = own is None and any(
        function is not None and name not in bound_names(function)
        for function in map(flow.function, flow.reads(name))
    )
    leaves = any(isinstance(one, ast.Return | ast.Yield) for one in ast.walk(loop))
    return None if elsewhere or leaves else loop


def _setting(flow: ValueFlow, name: str, at: ast.AST | None) -> ast.Assign | None:
    """Give the only statement that sets a name in the function of another one."""
    if at is None:
        return None
    own = [
        one
        for one in flow.settings(name)
        if one is not None and flow.function(one) is flow.function(at)
    ]
    match own:
        case [ast.Assign(targets=[ast.Name()]) as made]:
            return made
    return None


def _is_of_objects(flow: ValueFlow, name: str, at: ast.stmt | None) -> bool:
    """Tell whether what a name holds keeps objects, and copies none of them."""
    made = _setting(flow, name, at)
    match made.value if made is not None else None:
        case ast.Dict() | ast.List() | ast.DictComp():
            return True
        case ast.Call(func=ast.Name(id="dict" | "list")):
            return True
        case ast.BinOp(left=ast.List(), op=ast.Mult()):
            return True
    return False


def _row(
    edit: SourceEdit, flow: ValueFlow, result: ast.expr, statement: ast.stmt | None
) -> ast.stmt | None:
    """Have a row of memory that the cell makes be copied to; give the loop of all."""
    match statement:
        case (
            ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=index)],
                value=value,
            )
            | ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(
                        attr="copy_",
                        value=ast.Subscript(value=ast.Name(id=name), slice=index),
                    ),
                    args=[value],
                )
            )
        ) if _is_row(flow, index) and _is_copied(value, result):
            pass
        case _:
            return None
    made, loop = _setting(flow, name, statement), _loop(flow, statement, name)
    if made is None or loop is None:
        return None
    match made.value:
        case ast.Call(
            func=ast.Attribute(attr=makes, value=ast.Name(id=module)),
            args=[size, *given],
            keywords=options,
        ) if makes in _MAKES:
            pass
        case _:
            return None
    is_numpy = module in ("np", "numpy")
    # torch's further numbers are sizes
    sizes = [size] if is_numpy else [size, *given]
    dtypes = [*(given if is_numpy else ()), *(one.value for one in options)]
    is_plain = len(dtypes) < 2 and all(one.arg == "dtype" for one in options)
    dtype = _dtype(edit, dtypes, is_numpy) if is_plain else None
    if dtype is None or not (is_numpy or module == "torch"):
        return None
    size_text = ", ".join(map(edit.text, sizes))
    pinned = f"{edit.torch}.{makes}({size_text}{dtype}, pin_memory=True)"
    edit.replace(made.value, f"{pinned}.numpy()" if is_numpy else pinned)
    place = f"{edit.torch}.from_numpy({name})" if is_numpy else name
    text = f"{place}[{edit.text(index)}].copy_({edit.text(result)}, non_blocking=True)"
    edit.replace(statement, text)
    return loop


def _is_copied(value: ast.expr, result: ast.expr) -> bool:
    """Tell whether a value is a result, or that on the host."""
    while value is not result:
        match value:
            case ast.Call(
                func=ast.Attribute(attr="cpu" | "numpy", value=inner), args=[]
            ):
                value = inner
            case _:
                return False
    return True


def _is_row(flow: ValueFlow, index: ast.expr) -> bool:
    """Tell whether an index is a number or a part, so that rows are no copies."""
    match index:
        case ast.Constant(value=int()) | ast.Slice():
            return True
        case ast.Tuple(elts=parts):
            return all(_is_row(flow, one) for one in parts)
        case ast.Name(id=name):
            return bool(_counts(flow, name))
        case ast.BinOp(left=left, right=right):
            return _is_row(flow, left) and _is_row(flow, right)
    return False


def _counts(flow: ValueFlow, name: str) -> bool:
    """Tell whether a loop counts by a name."""
    for statement in flow.settings(name):
        match statement:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=one), *_]),
                iter=ast.Call(func=ast.Name(id="enumerate")),
            ) if one == name:
                continue
            case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name(id="range"))):
                continue
            case ast.Assign(value=ast.Constant(value=int())):
                continue
            case ast.AugAssign(value=ast.Constant(value=int())):
                continue
            case _:
                return False
    return bool(flow.settings(name))


def _dtype(edit: SourceEdit, given: list[ast.expr], is_numpy: bool) -> str | None:
    """Write torch's name of a dtype as an argument; None where it is not sure."""
    if not given:
        return f", dtype={edit.torch}.float64" if is_numpy else ""
    (one,) = given
    name = ast.unparse(one).split(".")[-1].strip("'")
    if not is_numpy:
        return f", dtype={edit.text(one)}"
    return f", dtype={edit.torch}.{name}" if name in _DTYPES else None
