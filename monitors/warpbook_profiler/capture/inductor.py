"""Which lines of Python the kernels of `torch.compile` came from, as Inductor tells it.

It keeps that of this process's compilations where `INDUCTOR_PROVENANCE` is 1 in the
environment (or `torch._inductor.config.trace.provenance_tracking_level`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath
from typing import Any

import msgspec

_MOST_KERNELS, _MOST_LINES, _LONGEST = 10_000, 8, 120
_FRAME = re.compile(r'File "([^"]{1,1000})", line (\d{1,9})')
#: of a cell of a notebook, whose file is nowhere
_CELL = re.compile(r"ipykernel_\d+|<ipython-input")


def kernel_lines() -> dict[str, str]:
    """Return by kernel "train.py:12, 14"; nothing where Inductor keeps none."""
    return {kernel: _words(places) for kernel, places in kernel_places().items()}


def kernel_places() -> dict[str, set[tuple[str, int]]]:
    """Return by kernel paths of Python and lines; none where Inductor keeps none."""
    compiler = sys.modules.get("torch._dynamo.utils")
    compilations: list[Any] = getattr(compiler, "get_compilation_metrics", list)()
    # a name of two graphs is of both
    found: dict[str, set[tuple[str, int]]] = {}
    for compilation in compilations:
        for text in getattr(compilation, "inductor_provenance", None) or ():
            for kernel, file, line in _places(text):
                found.setdefault(kernel, set()).add((file, line))
    return dict(islice(found.items(), _MOST_KERNELS))


def _places(text: Any) -> Iterator[tuple[str, str, int]]:
    try:
        traces = msgspec.json.decode(text, type=dict[str, list[str]])
    except (msgspec.MsgspecError, TypeError):
        return
    for key, stacks in traces.items():
        for stack in stacks:
            # the innermost frame is the one that called the operator
            for file, line in _FRAME.findall(stack)[-1:]:
                yield key.rpartition(":")[0] or key, file, int(line)


def _words(places: set[tuple[str, int]]) -> str:
    lines: dict[str, list[str]] = {}
    for file, line in sorted({(_name(file), line) for file, line in places}):
        lines.setdefault(file, []).append(str(line))
    words = (f"{file}:{', '.join(of[:_MOST_LINES])}" for file, of in lines.items())
    return "; ".join(words)[:_LONGEST]


def _name(file: str) -> str:
    return "cell" if _CELL.search(file) else PurePath(file).name
