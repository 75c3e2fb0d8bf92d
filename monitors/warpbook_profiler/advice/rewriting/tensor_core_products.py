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

_MODES, _WEAK = "torch.utils._python_dispatch", "torch.utils.weak"
#: what is added is zero: of an inner size in both, so that it adds nothing, and of a
#: result until something else than these takes it, or looks at its memory
_PADDED = '''\
class {name}({modes}.TorchDispatchMode):
    """Multiply matrices of half precision whose sizes are padded with zeros."""

    def __init__(self):
        super().__init__()
        # padded results, by the part of each that is the product
        self.wholes = {weak}.WeakTensorKeyDictionary()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {{}}), function.overloadpacket.__name__
        if name in ("linear", "matmul"):
            # whole in inference mode
            super().__enter__()
            try:
                return function.decompose(*args, **kwargs)
            finally:
                super().__exit__(None, None, None)
        given = [one for one in args if isinstance(one, {torch}.Tensor)]
        held = [one for one in given if one in self.wholes]
        if held and name in ("view", "_unsafe_view") and self.keeps_rows(*args[:2]):
            found = function(*args)
            whole = self.wholes[held[0]]
            self.wholes[found] = whole.view(*found.shape[:-1], whole.shape[-1])
            return found
        # what `reshape` and `contiguous` take of a part is a look at the cell's result
        layout = {{"memory_format": {torch}.contiguous_format}}
        is_look = name == "clone" and kwargs == layout
        tags = {torch}.Tag.inplace_view in function.tags, name == "_unsafe_view"
        if held and (function.is_view or is_look or any(tags)):
            self.settle(held[0])
            return args[0].view_as(args[0]) if is_look else function(*args, **kwargs)
        if name in ("relu", "gelu", "silu", "tanh", "mul") and held:
            # zeros stay zeros
            scalars = [one for one in args if not isinstance(one, {torch}.Tensor)]
            is_zero = all(abs(one) < float("inf") for one in scalars)
            if is_zero and len(held) == len(given) and "out" not in kwargs:
                if len({{one.shape for one in given}}) == 1:
                    found = function(*map(self.padded, args), **kwargs)
                    return self.part(found, given[0].shape)
        product = name in ("mm", "bmm", "addmm", "baddbmm")
        if not product or len(given) < len(args) or args[-1].element_size() != 2:
            return function(*args, **kwargs)
        shape = *args[-2].shape[:-1], args[-1].shape[-1]
        out = kwargs.pop("out", None)
        whole = function.overloadpacket(*map(self.padded, args), **kwargs)
        # a bias, and zero times infinity, are none
        for axis in (-1, -2):
            if added := whole.shape[axis] - shape[axis]:
                whole.narrow(axis, shape[axis], added).zero_()
        part = self.part(whole, shape)
        return part if out is None else out.copy_(part)

    def __exit__(self, *raised):
        super().__exit__(*raised)
        while self.wholes:
            self.settle(next(iter(self.wholes)))

    def keeps_rows(self, part, sizes):
        rows = self.wholes[part].shape[:-1] == part.shape[:-1]
        is_shape = not isinstance(sizes, {torch}.dtype)
        return rows and is_shape and sizes[-1] == part.shape[-1]

    def settle(self, part):
        """Give a part, and those of its memory, memory of its size."""
        # `contiguous` would leave what is empty, or one row, as it is
        own = part.clone(memory_format={torch}.contiguous_format)
        memory = part.untyped_storage()._cdata
        for one in list(self.wholes):
            if one.untyped_storage()._cdata == memory:
                one.data = own.view(one.shape)
                del self.wholes[one]

    def part(self, whole, shape):
        if whole.shape == shape:
            return whole
        part = whole[tuple(map(slice, shape))]
        self.wholes[part] = whole
        return part

    def padded(self, matrix):
        if not isinstance(matrix, {torch}.Tensor):
            return matrix
        matrix = self.wholes.get(matrix, matrix)
        sizes = reversed(matrix.shape[-2:])
        added = [n for size in sizes for n in (0, -size % {tile} if size > 1 else 0)]
        return {torch}.nn.functional.pad(matrix, added) if any(added) else matrix

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
        weak = edit.module(_WEAK)
        text = _PADDED.format(
            name=name, modes=modes, weak=weak, torch=edit.torch, tile=TILE
        )
        edit.at_start(text)
        edit.under(statements, f"{name}()")
        yield edit.source()
