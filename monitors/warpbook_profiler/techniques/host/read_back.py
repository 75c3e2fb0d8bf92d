"""Results that a loop copies to the host turn by turn, each of which it waits for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors.units import duration_ns, rate, size
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import Call, CellCode, blocks
from warpbook_profiler.advice.code.host_flow import round_trips
from warpbook_profiler.advice.code.landing_code import landed
from warpbook_profiler.advice.code.read_code import (
    begins,
    is_read_elsewhere,
    loop_around,
    own_memory,
    uses,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit, bound_names
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Bools, Category, Int64s
from warpbook_profiler.techniques.host.waits import HOST_WAITS
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: operators that copy a tensor to the host; others read a value in passing
_COPIES = ("aten::to", "aten::_to_copy", "aten::copy_")
_PAGEABLE = "DtoH (Device -> Pageable"
_TO_GPU = "HtoD"
#: fewer are no loop
_LEAST_COPIES = 4
#: of smaller ones the wait takes longer than the bytes
_LARGE_BYTES = 256 << 10
#: of the bare run, below which copies are left alone
_LEAST_SHARE = 0.03
_METHODS = ("cpu", "to", "numpy", "tolist", "copy_")
#: of results, in which their rows alone differ
_MOST_SIZES = 2
#: joined they would be of one dtype
_ALIKE = "len({{one.dtype for one in {}}}) == 1"
_TAILS = (".cpu()", ".cpu().numpy()")
#: what joins results on the host, and the same on the GPU
_JOINS = {"torch.cat": "cat", "torch.concat": "cat", "torch.stack": "stack"}
_JOINS_OF_NUMPY = {
    "np.concatenate": "cat",
    "np.stack": "stack",
    "np.array": "stack",
}


def read_back(evidence: Evidence) -> Iterator[Proposal]:
    """Propose pinned memory for large results, and one copy of many small ones."""
    copies = _copies(evidence)
    read = _reading_call(evidence.code)
    reads = np.unique(evidence.operators.outer[copies])
    if len(reads) < _LEAST_COPIES or (evidence.code.is_known and read is None):
        return
    line = read.line if read else _line(evidence, copies)
    if np.median(evidence.gpu.size_bytes[copies]) >= _LARGE_BYTES:
        yield from _pinned(evidence, copies, read, line)
    else:
        yield _stacked(evidence, copies, read, line)


def _pinned(
    evidence: Evidence, copies: Int64s, read: Call | None, line: int | None
) -> Iterator[Proposal]:
    time_ns = evidence.time_ns(copies)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    size_bytes = int(evidence.gpu.size_bytes[copies].sum())
    span = (
        None
        if evidence.chip is None
        else evidence.chip.copy(size_bytes, "to_host", calls=len(copies))
    )
    ways = Ways(evidence)
    # a copy takes time whatever memory it is to
    ways.resize(copies, (span or Span(0.0, 0.0, 0.0)).at_most(time_ns))
    reads = np.unique(evidence.operators.outer[copies])
    ways.stop_waiting(evidence.waits_within(reads))
    yield Proposal(
        name="pinned-results",
        title="Copy the results to pinned memory with non_blocking=True.",
        evidence=(
            f"{len(copies):,} copies to the host carry {size(size_bytes)} to pageable "
            f"memory at {rate(size_bytes / max(time_ns, 1) * 1e9, 'B')}, and the host "
            f"waits for each: {duration_ns(time_ns)} in the profile."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "Pin the memory once, before the run: pinning takes longer than the copies."
        ),
        operator=evidence.operators.name(int(reads[0])),
        line=line,
        code=_without_waits(evidence.code, read),
    )


def _stacked(
    evidence: Evidence, copies: Int64s, read: Call | None, line: int | None
) -> Proposal:
    operators = evidence.operators
    reads = np.unique(operators.outer[copies])
    # one is left, for all of them in the end
    removed = reads[:-1]
    ways = Ways(evidence)
    ways.drop_operators(removed)
    ways.stop_waiting(evidence.waits_within(removed))
    waits = evidence.waits_within(reads)
    waited_ns = int(evidence.calls.api.duration_ns[waits].sum())
    carried_bytes = int(evidence.gpu.size_bytes[copies].sum())
    return Proposal(
        name="stack-results",
        title="Keep the results on the GPU, and copy them all together after the loop.",
        evidence=(
            f"{len(copies):,} copies to the host carry {size(carried_bytes)}, "
            f"and the host waits for the GPU each time: {duration_ns(waited_ns)} in "
            "the profile."
        ),
        ways=ways,
        operator=operators.name(int(removed[0])),
        line=line,
        code=_copied_before(evidence.code, read)
        or _copied_after(evidence, read, copies),
    )


def _copies(evidence: Evidence) -> Int64s:
    """Give the copies to pageable memory that don't come back to the GPU."""
    gpu, operators = evidence.gpu, evidence.operators
    if round_trips(evidence.code):
        return np.empty(0, np.int64)
    is_copy, is_sized = gpu.is_in(Category.COPY), gpu.size_bytes > 0
    to_host = is_copy & is_sized & _names_with(evidence, _PAGEABLE)
    copies_tensor = np.append(operators.named(*_COPIES) & operators.outermost, False)
    to_host &= copies_tensor[operators.outer]
    if not evidence.code.is_known:
        back = is_copy & is_sized & _names_with(evidence, _TO_GPU)
        to_host &= ~np.isin(gpu.size_bytes, gpu.size_bytes[back])
    return np.flatnonzero(to_host)


def _names_with(evidence: Evidence, text: str) -> Bools:
    gpu = evidence.gpu
    fits = np.array([text in name for name in gpu.names] or [False])
    chosen: Bools = fits[gpu.name]
    return chosen


def _line(evidence: Evidence, copies: Int64s) -> int | None:
    launch = int(evidence.calls.launch[copies[0]])
    return evidence.line_at(int(evidence.calls.api.start_ns[launch]))


def _reading_call(code: CellCode) -> Call | None:
    """Give the call that copies to the host, one in a loop first."""
    reads = [call for call in code.calls(*_METHODS) if _is_read(call)]
    # of `x.cpu().numpy()` it is the inner one that copies
    reads.sort(key=lambda call: (not call.in_loop, _METHODS.index(call.name)))
    return next(iter(reads), None)


def _is_read(call: Call) -> bool:
    if call.name == "copy_":
        return bool(call.node.args)
    given = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
    names_cpu = any("cpu" in ast.unparse(value) for value in given)
    return bool(call.receiver) and (call.name != "to" or names_cpu)


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


class _Copied(NamedTuple):
    """A result that is copied to the host."""

    #: on the GPU
    result: ast.expr
    #: with what is made of it on the host, ".cpu().numpy()"
    whole: ast.expr
    tail: str


def _copied(code: CellCode, read: Call | None) -> _Copied | None:
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
    return _Copied(function.value, whole, tail)


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


def _without_waits(code: CellCode, read: Call | None) -> str:
    """Write that results go to memory that torch pins, and are waited for at once."""
    if read is not None and read.name == "copy_":
        (result, *_) = read.node.args
        return landed(code, result, result, read.node)
    copied = _copied(code, read)
    if read is None or copied is None or copied.tail not in _TAILS:
        return ""
    return landed(code, copied.result, copied.whole, read.node)


def _copied_before(code: CellCode, read: Call | None) -> str:
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


def _copied_after(evidence: Evidence, read: Call | None, copies: Int64s) -> str:
    """Write that results are kept, and copied in one after the loop."""
    code, copied = evidence.code, _copied(evidence.code, read)
    if copied is None:
        return ""
    edit = SourceEdit(code)
    kept = own_memory(edit, copied.result)
    joined = _joined(edit, code, copied, kept)
    if joined:
        return joined
    # a last batch may have fewer rows; of more sizes others may differ, too
    sizes = len(np.unique(evidence.gpu.size_bytes[copies]))
    if sizes > _MOST_SIZES:
        return ""
    extended = _extended(edit, code, copied, kept)
    if extended:
        return extended
    if copied.tail not in _TAILS:
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
    method = copied.tail.removeprefix(".cpu()")
    if sizes == 1:
        listed = f"list({edit.torch}.stack({name}).cpu(){method or '.unbind()'})"
    else:
        parts = f"{edit.torch}.cat({name}).cpu().split(list(map(len, {name})))"
        listed = f"[one{method} for one in {parts}]" if method else f"list({parts})"
    edit.replace(copied.whole, kept)
    each = f"[one{copied.tail} for one in {name}]"
    edit.after(statement, f"{name} = {listed} if {_ALIKE.format(name)} else {each}")
    return edit.source()


def _joined(edit: SourceEdit, code: CellCode, copied: _Copied, kept: str) -> str:
    """Write that what a comprehension gives is joined on the GPU, then copied."""
    flow = ValueFlow(code)
    made = flow.parent(copied.whole)
    call = flow.parent(made) if made is not None else None
    if not isinstance(made, ast.ListComp) or not isinstance(call, ast.Call):
        return ""
    if call.args != [made]:
        return ""
    called = ast.unparse(call.func)
    is_numpy = copied.tail == ".cpu().numpy()"
    joins = _JOINS_OF_NUMPY if is_numpy else _JOINS
    has_axis = {one.arg for one in call.keywords} <= {"axis", "dim"}
    if called not in joins or not has_axis or copied.tail not in _TAILS:
        return ""
    turns = edit.text(made).replace(edit.text(copied.whole), kept, 1)
    given = ", ".join([turns, *map(ast.unparse, call.keywords)])
    edit.replace(call, f"{edit.torch}.{joins[called]}({given}){copied.tail}")
    return edit.source()


def _extended(edit: SourceEdit, code: CellCode, copied: _Copied, kept: str) -> str:
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


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("pinned-results",),
            what=(
                "copies of 256 KiB or more to pageable memory of the host, four times "
                "or more"
            ),
            time="a bound",
            lab="host-device-copies",
        ),
        ChangeKind(
            names=("stack-results",),
            what=(
                "smaller tensors copied to the host in a loop, four times or more, by "
                "`.cpu()` and the like: `torch.stack` and one copy"
            ),
            time="predicted",
            answers=HOST_WAITS,
            lab="read-the-trace",
        ),
    ),
    rule=read_back,
    untried=BY_EDIT,
)
