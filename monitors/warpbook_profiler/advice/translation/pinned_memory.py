"""Edits that pin the memory of what a cell copies to the GPU, once and before."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from warpbook_profiler.advice.code.cell_code import Call, CellCode
from warpbook_profiler.advice.code.containers import Containers
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.translation.made_values import LOOKS
from warpbook_profiler.events.columns import Category

#: a source with more calls is not edited
_MOST_CALLS = 200
_PINNED = '''\
def {pinned}(value):
    """Return the value in pinned memory; pinned tensors are returned unchanged."""
    if type(value) is {torch}.Tensor and value.device.type == "cpu":
        return value if value.requires_grad else value.pin_memory()
    if type(value) in (list, tuple):
        return type(value)(map({pinned}, value))
    if type(value) is dict:
        return {{key: {pinned}(one) for key, one in value.items()}}
{arrays}    return value

'''
#: memory that torch and NumPy share stays pinned as long as the array is there
_ARRAYS = """\
    if type(value) is {numpy}.ndarray and value.flags.c_contiguous:
        if value.dtype.kind in "biufc" and value.flags.writeable:
            return {torch}.from_numpy(value).pin_memory().numpy()
"""
#: functions that take what they are given as it is
_GOES_OVER = frozenset(
    "map iter reversed tqdm next filter chain islice sorted len from_numpy "
    "as_tensor".split()
)
_VIEWS = LOOKS | {"numpy", "flatten", "squeeze", "transpose", "permute", "narrow"}
#: methods of containers that change them
_CHANGES = frozenset("append extend insert pop remove clear update setdefault".split())


def pinned_before(evidence: Evidence, calls: Sequence[Call]) -> str:
    """Write that what calls copy is pinned before, once: later it is pinned already.

    Args:
        evidence: of the cell.
        calls: of `to`, `cuda` or `pin_memory`.

    Returns:
        Nothing where that has no name of its own, or the cell writes to it.
    """
    flow = ValueFlow(evidence.code)
    # beside the copies of a loop, others move a model once
    repeated = [one for one in calls if one.in_loop or flow.is_repeated(one.node)]
    chosen = (repeated or calls)[:_MOST_CALLS]
    found = {call: _container(flow, call.node) for call in chosen}
    names = dict.fromkeys(filter(None, found.values()))
    # a loader's batches are others each time
    is_loaded = any("DataLoader" in one for one in evidence.operators.annotations.names)
    is_written = any(_is_written(evidence.code, flow, name) for name in names)
    if is_loaded or is_written or not names:
        return ""
    edit = SourceEdit(evidence.code)
    pinned = edit.free_name("pinned")
    lines = [f"{name} = {pinned}({name})" for name in names]
    arrays = ""
    if evidence.code.calls("from_numpy", "as_tensor"):
        arrays = _ARRAYS.format(numpy=edit.module("numpy"), torch=edit.torch)
    made = _PINNED.format(pinned=pinned, torch=edit.torch, arrays=arrays)
    edit.at_start("\n".join([made, *lines]))
    for call, name in found.items():
        is_told = any(one.arg == "non_blocking" for one in call.node.keywords)
        is_copy = name and call.name != "pin_memory" and not is_told
        is_copy = is_copy and not evidence.is_own_method(call.name)
        if is_copy and not copies_to_host(evidence) and not _is_given(flow, name):
            edit.arguments(call.node, {"non_blocking": "True"})
    return edit.source()


def _is_given(flow: ValueFlow, name: str) -> bool:
    """Tell whether a function that is not in sight may write to what a name holds."""
    for call in flow.opaque_calls:
        given = [*call.args, *(one.value for one in call.keywords)]
        if ast.unparse(call.func).split(".")[-1] in _GOES_OVER:
            continue
        if any(Containers(flow).holding(one) == name for one in given):
            return True
    return False


def _container(flow: ValueFlow, call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return Containers(flow).holding(call.func.value)
    return ""


def _is_written(code: CellCode, flow: ValueFlow, name: str) -> bool:
    """Tell whether the cell may change what a name holds, or a part of that."""
    written: list[ast.expr] = []
    for node in ast.walk(code.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=method, value=value)):
                is_in_place = method.endswith("_") or method in _CHANGES
                written += [value] if is_in_place else []
            case ast.Subscript(value=value) | ast.Attribute(value=value):
                written += [value] if not isinstance(node.ctx, ast.Load) else []
            case ast.AugAssign(target=target):
                written.append(target)
            case ast.keyword(arg="out", value=value):
                written.append(value)
    return any(
        Containers(flow).holding(whole) == name
        for one in written
        for whole in _wholes(flow, one)
    )


def _wholes(flow: ValueFlow, node: ast.expr) -> list[ast.expr]:
    """Return a value, and what it may be a view of."""
    found = [node]
    for one in found:
        values: list[ast.expr] = []
        match one:
            case ast.Subscript(value=value) | ast.Attribute(attr="data", value=value):
                values = [value]
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in _VIEWS:
                values = [value]
            case ast.Name(id=name):
                made = flow.settings(name)
                values = [it.value for it in made if isinstance(it, ast.Assign)]
        found += [value for value in values if value not in found]
    return found


def copies_to_host(evidence: Evidence) -> bool:
    """Tell whether anything but `.item()` copies to the host."""
    operators, gpu = evidence.operators, evidence.gpu
    to_host = np.array(["DtoH" in name for name in gpu.names] or [False])[gpu.name]
    is_item = np.append(operators.named("aten::_local_scalar_dense"), False)
    copies = to_host & gpu.is_in(Category.COPY)
    return bool((copies & ~is_item[operators.direct]).any())
