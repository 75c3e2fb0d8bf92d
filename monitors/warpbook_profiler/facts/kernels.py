"""What kind of work a kernel is, from its name and its launch.

The profilers' own answers fail on Hopper: PyProf's list of names calls nvjet,
FlashAttention and cuDNN's attention "no tensor core" and `ffma` gemms "tensor core";
Kineto's occupancy is 0 for every kernel with more than 48 KB of shared memory.
Checked on H200 traces, and against ncu and GPM.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from warpbook_profiler.events.columns import NONE, Bools, Category, Columns, KernelShape
from warpbook_profiler.events.run import GpuLimits
from warpbook_profiler.facts.library_names import moves, multiplies
from warpbook_profiler.facts.occupancy import (
    MULTIPROCESSORS,
    WARP,
    Multiprocessor,
    Occupancy,
    occupancy,
)

#: a trace has a few hundred; they are asked about again and again
_MOST_NAMES = 4_096

# a kernel's own name, behind its result and its namespaces
_OWN = r"(void )?(\w+::|\(anonymous namespace\)::)*"
# NCCL, RCCL, NVSHMEM and MSCCL++; torch's symmetric memory, vLLM, TensorRT-LLM
_COMMUNICATION = re.compile(
    _OWN + r"(nccl[A-Z]|rccl[A-Z]|nvshmem|msccl|multimem_|cross_device_reduce"
    r"|(one|two)_shot_all_reduce|(one|two)ShotAllReduce)"
)
# where torch.distributed launches from; what computes beside it has operators within
_COMMUNICATES = re.compile(
    r"record_param_comms$|nccl:|c10d::|_c10d_functional(_autograd)?::|symm_mem::"
)
# Inductor says in front which kind it generated; what follows are merely operators
_GENERATED = re.compile(r"triton_")
_GENERATED_MOVING = re.compile(r"triton_(poi|red|per)_")
_GENERATED_PRODUCT = re.compile(r"triton_tem_")
# pointwise, reducing and layout kernels, by the libraries that own these names
_MOVING = re.compile(
    _OWN + r"(at::|cub::|thrust::|Memcpy|Memset"
    r"|(?<=namespace\)::)(softmax_warp|elementwise_kernel)_"
    r"|(vectorized|unrolled)_\w*kernel\b"
    r"|cudnn::(ops::|bn_(fw|bw))|splitKreduce_kernel"
    # each number of a sparse matrix is read for one row of the other
    r"|cusparse::|rocsparse::"
    r"|vllm::(\w+_)?rms_norm)"
)
# cuDNN's and others' copies of a tensor from one layout of its axes to another
_LAYOUT = re.compile(
    r"nchwToNhwc|nhwcToNchw|cudnn::\S*convertTensor|nchw2nhwc|nhwc2nchw|batched_transpose_"
)
_SPARSE = re.compile(r"(void )?(cu|roc)sparse::")
# single-precision and other plain arithmetic, whatever library it is from
_PLAIN = re.compile(
    r"ffma|simt|[sdcz]gemm|[sdcz]gemv|gemv|f32f32_f32f32|hgemm_(?!.*(tensorop|884|1688|16816))"
    r"|^dot_kernel|^scal_kernel|scudnn|^(void )?fft[12]d_"
    # cuDNN's convolutions of single precision by Fourier transforms
    r"|^(void )?(pointwise_mult_and_sum_complex|flip_filter)<float",
    re.I,
)
# what attention does beside its products
_BESIDE_ATTENTION = re.compile(
    r"flash_bwd_(dot|convert|clear|preprocess|postprocess)|splitkv_combine"
    r"|flash_fwd_combine|FlashAttnBwdP(re|ost)process|FlashAttnFwdCombine"
)
_TENSOR = re.compile(
    r"nvjet|wgmma|gmma|hmma|imma|qmma|dmma|tensorop|tensor_op|(?<!\d)(16816|16832|1688|884)"
    r"|s1688|h1688|s884|h884|i8816|i16832|flash_?(attn)?_?(fwd|bwd)|fmha|mha_(fwd|bwd)"
    r"|sdpa|tcgen05|warpgroup|sm90_xmma|sm80_xmma|sm100_",
    re.I,
)

#: where the compute capability is not known
_MAX_BLOCKS_PER_SM = 32


def communicates(events: Columns, work: Columns) -> Bools:
    """Tell which work moves data between GPUs, by its name or by what launched it."""
    operators = events.only(Category.OPERATOR)
    operators = operators.where(
        _told(operators, lambda name: bool(_COMMUNICATES.match(name)))
        & (operators.external != NONE)
    )
    launched: Bools = np.isin(work.external, operators.external)
    return _told(work, is_communication) | launched


def _told(events: Columns, tell: Callable[[str], bool]) -> Bools:
    is_told = np.array([tell(name) for name in events.names] or [False], np.bool_)
    chosen: Bools = is_told[events.name]
    return chosen


def is_communication(name: str) -> bool:
    """Tell whether a kernel moves data between GPUs (NCCL and its kin)."""
    return bool(_COMMUNICATION.match(name))


@lru_cache(_MOST_NAMES)
def only_moves(name: str) -> bool:
    """Tell whether a library's kernel does little with each number that it reads."""
    if _GENERATED.match(name) and not moves(name):
        return bool(_GENERATED_MOVING.match(name))
    if _MOVING.match(name) or _BESIDE_ATTENTION.search(name):
        return True
    return copies_layout(name) or moves(name)


def copies_layout(name: str) -> bool:
    """Return whether a kernel copies a tensor to another layout of its axes."""
    return bool(_LAYOUT.search(name))


def is_sparse(name: str) -> bool:
    """Tell whether a kernel takes a matrix of which most elements are not stored."""
    return bool(_SPARSE.match(name))


@lru_cache(_MOST_NAMES)
def uses_tensor_cores(name: str) -> bool | None:
    """Tell whether a kernel computes on the tensor cores; None if its name says not.

    A kernel of somebody's own, in CUDA C++ or Triton, may use them or not.
    """
    if _GENERATED_PRODUCT.match(name):
        return True
    if only_moves(name) or is_communication(name):
        return False
    numbers = multiplies(name)
    if numbers is not None:
        return numbers in ("8 bits", "half")
    if _GENERATED.match(name):
        return None
    if _TENSOR.search(name):
        # "sm80_xmma_gemm_f32f32_f32f32_..._ffma" is arithmetic of plain FP32 cores
        return not re.search(r"ffma|simt|f32f32_f32f32", name)
    return False if _PLAIN.search(name) else None


def resident(shape: KernelShape, gpu: GpuLimits) -> Occupancy | None:
    """Return what a multiprocessor holds of a kernel at most; None where unknown.

    Registers, shared memory, threads and blocks allow no more (CUDA programming guide,
    compute capabilities).
    """
    threads = shape.threads_per_block
    limits = (gpu.sm_count, gpu.threads_per_sm, gpu.registers_per_sm)
    if not threads or None in (*limits, gpu.shared_memory_per_sm_bytes):
        return None
    sm_count, threads_per_sm, registers_per_sm = (limit or 0 for limit in limits)
    if not sm_count or threads_per_sm < WARP:
        return None
    known = MULTIPROCESSORS.get(gpu.compute_capability or (0, 0))
    held_at_most = Multiprocessor(
        threads_per_sm // WARP,
        known.max_blocks if known else _MAX_BLOCKS_PER_SM,
        gpu.shared_memory_per_sm_bytes or 0,
        registers_per_sm,
    )
    return occupancy(
        held_at_most, threads, shape.registers_per_thread, shape.shared_memory_bytes
    )


def occupancy_ratio(shape: KernelShape, gpu: GpuLimits) -> float | None:
    """Estimate the share of warps that a multiprocessor holds; None where unknown.

    It is the most that is allowed, bounded by how many blocks there are.
    """
    held = resident(shape, gpu)
    if held is None:
        return None
    warps_per_block = -(-shape.threads_per_block // WARP)
    blocks = min(float(held.blocks), shape.blocks / (gpu.sm_count or 1))
    return min(blocks * warps_per_block / held.max_warps, 1.0)
