"""A cell that runs on the CPU, as the trace that a GPU would leave of it.

Its operators, their order and what they are called with are torch's own; each that
computes launches a kernel, and times are those of `program`.
"""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import torch

from tests.profiler.advice.program import Cell

_CATEGORIES = ("cpu_op", "user_annotation")
_KERNEL_NS = 2_000
#: they look at memory, or make it
_NO_KERNELS = frozenset(
    "aten::" + name
    for name in "select slice view unsqueeze squeeze expand as_strided t transpose "
    "unbind detach empty empty_like empty_strided alias reshape permute resize_ narrow "
    "split chunk view_as expand_as numpy_T matrix_H adjoint result_type movedim "
    "unflatten flatten new_empty _unsafe_view lift_fresh unfold diagonal broadcast_to "
    "is_nonzero detach_ resolve_conj resolve_neg set_ contiguous to zeros_like".split()
)
#: what a CPU calls others for, such as the dtype of a number, and a GPU does itself
_AS_ONE = frozenset(
    f"aten::{name}{end}"
    for name in (
        "add sub mul div pow rsub sum mean eq ne lt le gt ge maximum minimum".split()
    )
    for end in ("", "_")
) | {"aten::linalg_lu_solve", "aten::linalg_lu_factor_ex", "aten::linalg_vector_norm"}


def namespace_of(setup: str) -> dict[str, Any]:
    """Run the cells before; their functions have sources, as those of a notebook."""
    names: dict[str, Any] = {"__name__": "__main__", "dev": "cpu"}
    source = (
        f"import torch\nfrom torch import nn\nimport torch.nn.functional as F\n{setup}"
    )
    lines = source.splitlines(keepends=True)
    linecache.cache["earlier"] = len(source), None, lines, "earlier"
    torch.manual_seed(0)
    exec(compile(source, "earlier", "exec"), names)
    return names


def traced(setup: str, source: str, path: Path) -> Cell:
    """Run a cell and lay out what it called."""
    names = namespace_of(setup)
    with torch.profiler.profile(record_shapes=True) as recorded:
        exec(source, names)
    recorded.export_chrome_trace(str(path))
    events = json.loads(path.read_bytes())["traceEvents"]
    events = [one for one in events if one.get("cat") in _CATEGORIES]
    events.sort(key=lambda one: (one["ts"], -one["dur"]))
    cell = Cell(source)
    _lay_out(cell, events)
    cell.wait("cudaDeviceSynchronize")
    return cell


def _lay_out(cell: Cell, events: list[dict[str, Any]]) -> None:
    at = 0
    while at < len(events):
        event, end = events[at], at + 1
        until = event["ts"] + event["dur"]
        while end < len(events) and events[end]["ts"] < until:
            end += 1
        inner, at = events[at + 1 : end], end
        name = event["name"]
        if name == "aten::item":
            cell.item()
            continue
        with cell.operator(name, category=event["cat"]):
            if inner and name not in _AS_ONE:
                _lay_out(cell, inner)
            elif event["cat"] == "cpu_op" and name not in _NO_KERNELS:
                cell.kernel(_KERNEL_NS)
        own = {key: one for key, one in event["args"].items() if key != "External id"}
        cell.events[-1]["args"] |= own
