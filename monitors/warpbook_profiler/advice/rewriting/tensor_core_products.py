"""Products that tensor cores take, wherever they are: by dtype or by size.

Those of modules, of other cells and of a backward pass are among them.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.product_code import possible_products
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.faster_products import TILE

#: what lets products use TF32, and what else that sets: of matrices, of torch before
#: 2.9, of convolutions
_SETTINGS = (
    ("backends.cuda.matmul.allow_tf32", "backends.cuda.matmul.fp32_precision"),
    ("backends.cuda.matmul.allow_tf32",),
    ("backends.cudnn.allow_tf32",),
)

_MODES = "torch.utils._python_dispatch"
#: what is added to the inner size is zero in both, and adds nothing
_PADDED = '''\
class {name}({modes}.TorchDispatchMode):
    """Multiply matrices of half precision whose sizes are padded."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        multiply, kwargs = function.overloadpacket, dict(kwargs or {{}})
        product = multiply.__name__ in ("mm", "bmm", "addmm", "baddbmm")
        if not product or args[-1].element_size() != 2:
            return function(*args, **kwargs)
        rows, columns = args[-2].shape[-2], args[-1].shape[-1]
        out = kwargs.pop("out", None)
        result = multiply(*map(self.padded, args), **kwargs)[..., :rows, :columns]
        return result.contiguous() if out is None else out.copy_(result)

    def padded(self, matrix):
        sizes = reversed(matrix.shape[-2:])
        added = [n for size in sizes for n in (0, -size % {tile} if size > 1 else 0)]
        if not any(added):
            return matrix
        return {torch}.nn.functional.pad(matrix, added)

'''


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


def padded_products(code: CellCode) -> Iterator[str]:
    """Have a cell multiply padded matrices, and cut what they give to its size."""
    edit = SourceEdit(code)
    if statements := edit.computing:
        name, modes = edit.free_name("PaddedProducts"), edit.module(_MODES)
        text = _PADDED.format(name=name, modes=modes, torch=edit.torch, tile=TILE)
        edit.at_start(text)
        edit.under(statements, f"{name}()")
        yield edit.source()
