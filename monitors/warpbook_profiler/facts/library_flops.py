"""Arithmetic of operators of libraries that serve language models.

Fused experts, products of 8 and of 4 bits, and attention of others, by what they were
called with. How tokens are spread over experts is not in a trace: they are taken to be
spread evenly.
"""

from __future__ import annotations

import math
import re

from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.traffic import FP4, ITEM_BYTES, Counted, Formula

_EXPERTS = re.compile(
    r"\w+::\w*(fused_\w*moe|fused_experts|(?<![a-z])fmoe|asm_moe|marlin_moe)\w*$"
)
_PRODUCTS = re.compile(
    r"(_C|_C_\w+|vllm|sglang|sgl_kernel|fbgemm|aiter|flashinfer|trtllm|torchao|mslk)::"
    r"\w*(scaled_(fp[48]_)?mm|f[48]f[48]bf16|gemm_a[48]w[48]|gemm_afp4|"
    r"(fp[48]|int8|w8a8)\w*_(mm|gemm|matmul))\w*$"
)
_OF_4_BITS = re.compile(r"fp4|f4f4|a4w4")
#: of the sizes of a token, no more experts are asked for it
_MOST_ASKED = 64


def library_formula(name: str) -> Formula | None:
    """Return the formula of a library's operator, if there is one."""
    if _EXPERTS.match(name):
        return _experts
    if _PRODUCTS.match(name):
        return _in_4_bits if _OF_4_BITS.search(name) else _product
    return None


def _experts(called: Operands) -> Counted:
    """Each token goes through both products of the experts that are asked for it."""
    matrices = [at for at, dims in enumerate(called.dims) if len(dims) == 2]
    weights = [at for at, dims in enumerate(called.dims) if len(dims) == 3][:2]
    first, second = (called.dims[at] for at in weights)
    tokens, width = called.dims[matrices[0]]
    experts = first[0]
    asked = next(
        sizes[1]
        for sizes in (called.dims[at] for at in matrices[1:])
        if sizes[0] == tokens and sizes[1] <= min(experts, _MOST_ASKED)
    )
    packed = 2 if first[2] * 2 == width else 1
    if second[0] != experts or width not in (first[1], first[2] * packed):
        raise ValueError("not the weights of experts")
    numbers = packed * (math.prod(first[1:]) + math.prod(second[1:]))
    used = 1 - (1 - asked / experts) ** tokens
    kinds = [called.dtypes[at] for at in weights]
    read = used * sum(
        math.prod(called.dims[at]) * ITEM_BYTES[kind]
        for at, kind in zip(weights, kinds, strict=True)
    )
    kind = called.dtypes[matrices[0]]
    tokens_bytes = tokens * width * ITEM_BYTES[kind]
    # what is packed is unpacked to the tokens' dtype; FP8 is multiplied as such
    dtype = kinds[0] if kinds[0].startswith("c10::Float8_e") else kind
    return Counted(
        2 * tokens * asked * numbers,
        tokens * width,
        ITEM_BYTES[kind],
        read_bytes=round(read) + tokens_bytes,
        dtype=dtype,
    )


def _product(called: Operands, packed: int = 1) -> Counted:
    """A product, maybe told first where to put it, of rows by columns or by rows."""
    matrices = [at for at, dims in enumerate(called.dims) if len(dims) == 2][:3]
    dims = [called.dims[at] for at in matrices]
    into = len(dims) == 3 and dims[2] in (
        (dims[1][1], dims[0][1]),
        (dims[0][1], dims[1][1]),
    )
    (rows, inner), other = dims[into : into + 2]
    if inner not in other or (into and dims[0][0] != rows):
        raise ValueError("not a product")
    columns = math.prod(other) // inner
    dtype = called.dtypes[matrices[into]]
    if packed > 1:
        dtype = FP4
    return Counted(
        2 * rows * inner * packed * columns,
        0 if into else rows * columns,
        None if into else 2,
        dtype=dtype,
    )


def _in_4_bits(called: Operands) -> Counted:
    """Two numbers are in a byte."""
    return _product(called, packed=2)
