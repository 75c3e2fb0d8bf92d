"""Kernels of AMD's libraries and of what serves language models, known by their names.

Only names that a library owns are here; a kernel of somebody's own has no namespace of
theirs. Collected from traces of vLLM, SGLang, xDiT and ROCm (docs/evidence).
"""

from __future__ import annotations

import re
from typing import Literal

from warpbook_profiler.facts import array_names

#: what a product's numbers are
Numbers = Literal["8 bits", "half", "single", "double"]

# Tensile's, which hipBLASLt and rocBLAS run: index order, types, then the tile; MI is
# the matrix instruction, so a name without it computes on plain cores
_TENSILE = re.compile(r"Cijk_[A-Z][a-z]+_[A-Z][a-z]+_(F8|B8|I8|[HBSDXCZI])")
_TENSILE_TYPES: dict[str, Numbers] = {
    **dict.fromkeys(("F8", "B8", "I8", "I"), "8 bits"),
    **dict.fromkeys(("H", "B"), "half"),
    **dict.fromkeys(("S", "X", "C"), "single"),
    **dict.fromkeys(("D", "Z"), "double"),
}
# MIOpen's implicit products, Composable Kernel's, and TensorRT-LLM's generated ones
_MIOPEN = re.compile(
    r"igemm_(?:fwd|bwd|wrw)(?:_data|_weights?)?_gtc\w*?_(fp32|fp16|bf16|int8)_"
)
_MIOPEN_TYPES: dict[str, Numbers] = {
    "fp32": "single",
    "fp16": "half",
    "bf16": "half",
    "int8": "8 bits",
}
_XDL = re.compile(r"\bck::\S*_xdl|^(void )?ck::kernel_\w*xdl|_ZN2ck\w*xdl")
_GENERATED = re.compile(r"(bmm|gemm)_\w+_sm1\d\d[a-z]?$")
# triton_kernels' product for experts, with the types of its operands and its tile
_OF_EXPERTS = re.compile(r"_matmul_ogs_[NT]{3}_(\w+?)_\d+x\d+x\d+x\d+")
_8_BITS = re.compile(r"E4m3|E5m2|fp8|mxfp8|e4m3", re.I)
# both products of experts in one kernel, or each in one: of vLLM, SGLang, aiter, CK
# and TensorRT-LLM
_EXPERTS = re.compile(
    r"fused_moe|moe_fused|fmoe_|moe_?gemm|moe_?stage_?[12]|marlin_moe|kernel_moe_|moe_mlp"
    r"|grouped_?gemm|Moe(Flatmm|GemmKernel)",
    re.I,
)
# attention over what is kept compressed, one head for all keys and values
_LATENT = re.compile(
    r"(?<![a-z])mla_?(decode|prefill|fwd|pfl|a8w8|a16w16|stage)|flash\w*_mla|fmha_mla"
)
# AOTriton's, aiter's and vLLM's attention in Triton, whose products are of tiles
_ATTENTION = re.compile(
    r"(attn_(fwd|bwd)|bwd_kernel_(dk_dv|dq|fuse)|sage_fwd|kernel_unified_attention_2d)"
    r"\w*$"
)

#: of the smaller side of a tile, below which a product reads its weights for few rows
_FEW_ROWS = 32
_TILES = (
    re.compile(r"Cijk_\w*?_MT(\d+)x(\d+)x\d+"),
    re.compile(r"_matmul_ogs_[NT]{3}_\w+?_(\d+)x(\d+)x\d+x\d+"),
    re.compile(r"(?:bmm|gemm)_\w+?_t(\d+)x(\d+)x"),
    re.compile(r"nvjet_(?:sm\d+_)?\w+?_(\d+)x(\d+)_\d+x\d+"),
)

_LIBRARY = re.compile(
    r"(?:\b|_ZN\d+)(?:vllm|sgl_hip|sgl_kernel|aiter|flashinfer|tensorrt_llm|moe::dev"
    r"|ck_tile|fbgemm_gpu)"
)
_SMALL_WORK = re.compile(
    r"rms_?norm|layer_?norm|norm2d|rotary|rope|act_and_mul|quant|reshape_and_cache"
    r"|kv_?cache|topk|softmax|sorting|routing|finalize|permute|moe_align|convert",
    re.I,
)
_PRODUCT = re.compile(r"gemm|matmul|fmha|mla|dequant", re.I)
_MOVING = re.compile(
    r"(void )?(\(anonymous namespace\)::)?("
    # vLLM and SGLang: one token reads all that is kept of those before it
    r"(vllm::)?paged_attention_|kernel_(paged_attention|unified_attention_3d)"
    r"|(ck_)?moe_(sorting|sum|align|(un)?permute|topk|softmax)|topk_softmax|topk_gating"
    r"|rotary_embedding_kernel<|store_kvcache<|_finalize_matmul_scatter_"
    r"|_combined_routing_|sage_quant_"
    # MIOpen
    r"|batched_transpose_\d|SubTensorOpWith|MIOpen\w*Norm|Op\dd?Tensor"
    # apex, fbgemm, and Inductor before it wrote operators into names
    r"|multi_tensor_apply_kernel<|split_embedding_|triton__\d+d)"
)


def moves(name: str) -> bool:
    """Tell whether one of these libraries' kernels only reads and writes."""
    if _MOVING.match(name) or array_names.passes(name):
        return True
    return bool(
        _LIBRARY.search(name) and _SMALL_WORK.search(name) and not _PRODUCT.search(name)
    )


def multiplies(name: str) -> Numbers | None:
    """Give the numbers that a product of these libraries takes; None if it is none."""
    if tensile := _TENSILE.match(name):
        return _TENSILE_TYPES[tensile[1]]
    if miopen := _MIOPEN.match(name):
        return _MIOPEN_TYPES[miopen[1]]
    if _OF_EXPERTS.match(name) or _GENERATED.match(name):
        return "8 bits" if _8_BITS.search(name) else "half"
    if _EXPERTS.search(name) or _LATENT.search(name):
        return "8 bits" if _8_BITS.search(name) else "half"
    if _XDL.search(name) or _ATTENTION.match(name) or array_names.is_product(name):
        return "half"
    return None


def has_few_rows(name: str) -> bool:
    """Tell whether a product's tile says that its weights are read for few rows.

    A library takes so narrow a tile where a side is as small: then a byte that is read
    is used too seldom to keep the units busy.
    """
    for tile in _TILES:
        if sides := tile.match(name):
            return min(int(sides[1]), int(sides[2])) <= _FEW_ROWS
    return False
