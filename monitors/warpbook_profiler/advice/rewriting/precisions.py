"""Products in a faster dtype, wherever they are: in modules and other cells, too."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.product_code import possible_products
from warpbook_profiler.advice.code.source_edit import SourceEdit

#: what lets products use TF32, and what else that sets: of matrices, of torch before
#: 2.9, of convolutions
_SETTINGS = (
    ("backends.cuda.matmul.allow_tf32", "backends.cuda.matmul.fp32_precision"),
    ("backends.cuda.matmul.allow_tf32",),
    ("backends.cudnn.allow_tf32",),
)


def in_tf32(code: CellCode) -> Iterator[str]:
    """Let all products of a cell use TF32; afterwards the setting is as it was."""
    for names in _SETTINGS:
        edit = SourceEdit(code)
        statements = edit.computing
        if not statements:
            return
        before = edit.free_name("precision_before")
        settings = [f"{edit.torch}.{name}" for name in names]
        whole = ", ".join(settings)
        lines = [f"{before} = {whole}", f"{settings[0]} = True"]
        edit.before(statements[0], "\n".join(lines))
        edit.finally_(statements, f"{whole} = {before}")
        if text := edit.source():
            yield text


def in_bfloat16(code: CellCode) -> Iterator[str]:
    """Put a block's products under autocast, with results that are float32 again."""
    for products in possible_products(code):
        for casts in (True, False):
            if text := products.in_bfloat16(casts):
                yield text
