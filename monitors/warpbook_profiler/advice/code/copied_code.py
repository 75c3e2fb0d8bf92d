"""Code that copies results of a loop one by one, written to copy all at once."""

from __future__ import annotations

import ast
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import Call, CellCode, blocks, bound_names
from warpbook_profiler.advice.code.read_code import (
    begins,
    is_read_elsewhere,
    loop_around,
    own_memory,
    uses,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow

#: of results, in which their rows alone differ
_MOST_SIZES = 2
#: joined they would be of one dtype
_ALIKE = "len({{one.dtype for one in {}}}) == 1"
TAILS = (".cpu()", ".cpu().numpy()")
#: what joins results on the host, and the same on the GPU
_JOINS = {"torch.cat": "cat", "torch.concat": "cat", "torch.stack": "stack"}
_JOINS_OF_NUMPY = {
    "np.concatenate": "cat",
    "np.stack": "stack",
    "np.array": "stack",
}


class Copied(NamedTuple):
    """A result that is copied to the host."""

    #: on the GPU
    result: ast.expr
    #: with what is made of it on the host, ".cpu().numpy()"
    whole: ast.expr
    tail: str


def copied_result(code: CellCode, read: Call | None) -> Copied | None:
    """Follow a result through methods of the host's memory."""
    if read is None or read.name not in ("cpu", "tolist") or read.node.args:
        return None
    function, whole, tail = read.node.func, read.node, f".{read.name}()"
    flow = ValueFlow(code)
    while True:
        method = flow.parent(whole)
        above = flow.parent(method) if isinstance(method, ast.Attribute) else None
        match above:
            case ast.Call(
                func=ast.Attribute(attr="numpy" | "tolist" as name),
                args=[],
                keywords=[],
            ):
                whole, tail = above, f"{tail}.{name}()"
            case _:
                break
    if not isinstance(function, ast.Attribute):
        return None
    return Copied(function.value, whole, tail)


def copied_before(code: CellCode, read: Call | None) -> str:
    """Write that rows of a tensor which stays the same are copied in one, before."""
    if read is None or read.name != "cpu" or read.node.args:
        return ""
    function = read.node.func
    match function:
        case ast.Attribute(
            value=ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=index))
        ) if name not in bound_names(code.tree):
            pass
        case _:
            return ""
    if not read.in_loop or not ValueFlow(code).is_same(name, None, read.node):
        return ""
    edit = SourceEdit(code)
    copied = edit.free_name(f"{name}_on_host")
    edit.at_start(f"{copied} = {name}.cpu()")
    edit.replace(read.node, f"{copied}[{index}]")
    return edit.source()


def copied_after(code: CellCode, read: Call | None, sizes: int) -> str:
    """Write that results are kept, and copied in one after the loop.

    Args:
        code: the cell.
        read: what copies a result.
        sizes: how many sizes copies have.
    """
    copied = copied_result(code, read)
    if copied is None:
        return ""
    edit = SourceEdit(code)
    kept = own_memory(edit, copied.result, ValueFlow(code))
    joined = _joined(edit, code, copied, kept)
    if joined:
        return joined
    # a last batch may have fewer rows; of more sizes others may differ, too
    if sizes > _MOST_SIZES:
        return ""
    extended = _extended(edit, code, copied, kept)
    if extended:
        return extended
    if copied.tail not in TAILS:
        return ""
    statement = _gathering(code, copied.whole)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp()):
            pass
        case ast.For(body=body):
            names = [_list_of(one, copied.whole) for one in body]
            name = next(filter(None, names), "")
            if not name or begins(code, name, statement) != []:
                return ""
        case _:
            return ""
    edit.replace(copied.whole, kept)
    call = _joining(code, name, copied)
    if call is not None and (whole := _join(edit, call, name, copied)):
        edit.replace(call, whole)
        return edit.source()
    method = copied.tail.removeprefix(".cpu()")
    if sizes == 1:
        listed = f"list({edit.torch}.stack({name}).cpu(){method or '.unbind()'})"
    else:
        parts = f"{edit.torch}.cat({name}).cpu().split(list(map(len, {name})))"
        listed = f"[one{method} for one in {parts}]" if method else f"list({parts})"
    each = f"[one{copied.tail} for one in {name}]"
    edit.after(statement, f"{name} = {listed} if {_ALIKE.format(name)} else {each}")
    return edit.source()


def _joining(code: CellCode, name: str, copied: Copied) -> ast.Call | None:
    """Return what joins a list after its loop and is its name's next value."""
    flow, loop = ValueFlow(code), loop_around(code, copied.whole)
    if loop is None:
        return None
    end = loop.end_lineno or 0
    later = (one for one in flow.reads(name) if one.lineno > end)
    first = next(later, None)
    call = None if first is None else flow.parent(first)
    setting = None if call is None else flow.parent(call)
    match call, setting:
        case ast.Call(args=[_]), ast.Assign(targets=[ast.Name(id=target)]) if (
            target == name and flow.parent(setting) in (code.tree, flow.parent(loop))
        ):
            return call
    return None


def _joined(edit: SourceEdit, code: CellCode, copied: Copied, kept: str) -> str:
    """Write that what a comprehension gives is joined on the GPU, then copied."""
    flow = ValueFlow(code)
    made = flow.parent(copied.whole)
    call = flow.parent(made) if made is not None else None
    if not isinstance(made, ast.ListComp) or not isinstance(call, ast.Call):
        return ""
    turns = edit.text(made).replace(edit.text(copied.whole), kept, 1)
    whole = _join(edit, call, turns, copied) if call.args == [made] else ""
    if not whole:
        return ""
    edit.replace(call, whole)
    return edit.source()


def _join(edit: SourceEdit, call: ast.Call, listed: str, copied: Copied) -> str:
    """Write what joins results so that it does so on the GPU; empty for other calls."""
    joins = _JOINS_OF_NUMPY if copied.tail == ".cpu().numpy()" else _JOINS
    called = ast.unparse(call.func)
    has_axis = {one.arg for one in call.keywords} <= {"axis", "dim"}
    if called not in joins or not has_axis or copied.tail not in TAILS:
        return ""
    given = ", ".join([listed, *map(ast.unparse, call.keywords)])
    return f"{edit.torch}.{joins[called]}({given}){copied.tail}"


def _extended(edit: SourceEdit, code: CellCode, copied: Copied, kept: str) -> str:
    """Write that a list is extended by all results at once, after the loop."""
    flow = ValueFlow(code)
    loop, statement = loop_around(code, copied.whole), flow.statement(copied.whole)
    match statement:
        case (
            ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="extend", value=ast.Name(id=name)),
                    args=[value],
                )
            )
            | ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value)
        ):
            pass
        case _:
            return ""
    is_list = copied.tail.endswith(".tolist()") or isinstance(statement, ast.Expr)
    if value is not copied.whole or loop is None or not is_list:
        return ""
    if uses(loop, name) != 1 or is_read_elsewhere(flow, name, loop):
        return ""
    results = edit.free_name("results")
    edit.before(loop, f"{results} = []")
    edit.replace(statement, f"{results}.append({kept})")
    joined = f"{edit.torch}.cat({results}){copied.tail}"
    each = f"[value for one in {results} for value in one{copied.tail}]"
    whole = f"{joined} if {_ALIKE.format(results)} else {each}"
    edit.after(loop, f"{name}.extend({whole})")
    return edit.source()


def _gathering(code: CellCode, whole: ast.expr) -> ast.stmt | None:
    """Return the loop that appends a value, or a comprehension's statement."""
    flow = ValueFlow(code)
    for block in blocks(code.tree):
        for statement in block.statements:
            match statement:
                case ast.Assign(value=ast.ListComp(elt=value)) if value is whole:
                    return statement
                case ast.For(body=body):
                    names = [_list_of(inner, whole) for inner in body]
                    # what the loop has so far, nobody in it looks at
                    if any(
                        uses(statement, name) == 1
                        and not is_read_elsewhere(flow, name, statement)
                        for name in filter(None, names)
                    ):
                        return statement
    return None


def _list_of(statement: ast.stmt, value: ast.expr) -> str:
    """Return the list that a statement appends a value to; empty for another one."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="append", value=ast.Name(id=name)), args=[one]
            )
        ) if one is value:
            return name
    return ""
