"""Products of half precision, wherever they are, of matrices with zeros added.

Sizes are seen where a product is computed: in functions, modules and a backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.faster_products import TILE

_MODES = "torch.utils._python_dispatch"
#: what is added to the inner size is zero in both, and adds nothing
_PADDED = '''\
class {name}({modes}.TorchDispatchMode):
    """Multiply matrices of half precision whose sizes are padded."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        product = function.overloadpacket.__name__ in ("mm", "bmm", "addmm", "baddbmm")
        if not product or args[-1].element_size() != 2:
            return function(*args, **(kwargs or {{}}))
        rows, columns = args[-2].shape[-2], args[-1].shape[-1]
        result = function(*map(self.padded, args), **(kwargs or {{}}))
        return result[..., :rows, :columns].contiguous()

    def padded(self, matrix):
        sizes = reversed(matrix.shape[-2:])
        added = [n for size in sizes for n in (0, -size % {tile} if size > 1 else 0)]
        if not any(added):
            return matrix
        return {torch}.nn.functional.pad(matrix, added)

'''


def padded_products(code: CellCode) -> Iterator[str]:
    """Have a cell multiply padded matrices, and cut what they give to its size."""
    edit = SourceEdit(code)
    if statements := edit.computing:
        name, modes = edit.free_name("PaddedProducts"), edit.module(_MODES)
        text = _PADDED.format(name=name, modes=modes, torch=edit.torch, tile=TILE)
        edit.at_start(text)
        edit.under(statements, f"{name}()")
        yield edit.source()
