"""What kind of work a kernel is, from its name and its launch.

The profilers' own answers fail on Hopper: PyProf's list of names calls nvjet,
FlashAttention and cuDNN's attention "no tensor core" and `ffma` gemms "tensor core";
Kineto's occupancy is 0 for every kernel with more than 48 KB of shared memory.
Checked on H200 traces, and against ncu and GPM.
"""

from __future__ import annotations

import re

from warpbook_monitors.occupancy import (
    MULTIPROCESSORS,
    WARP,
    Multiprocessor,
    occupancy,
)
from warpbook_monitors.trace.columns import KernelShape
from warpbook_monitors.trace.run import GpuLimits

_COMMUNICATION = re.compile(
    r"nccl|nvshmem|mscclpp|rccl|multimem_|cross_device_reduce"
    r"|(?<!warp)(?<!block)(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)",
    re.I,
)
# single-precision and other plain arithmetic, whatever library it is from
_PLAIN = re.compile(
    r"ffma|simt|[sdcz]gemm|[sdcz]gemv|gemv|f32f32_f32f32|hgemm_(?!.*(tensorop|884|1688|16816))"
    r"|^void at::|^at::native|at::native::|elementwise|reduce_kernel|softmax|layer_norm"
    r"|triton_(poi|red|per)_|cub::|thrust::|Memcpy|Memset|^dot_kernel|^scal_kernel"
    r"|scudnn|nchwToNhwc|nhwcToNchw|cudnn::bn_(fw|bw)|fft[12]d_|rms_?norm"
    r"|splitKreduce|cast_kernel|fill_kernel|index|scatter|gather|sort",
    re.I,
)
# what attention does beside its products
_BESIDE_ATTENTION = re.compile(
    r"flash_bwd_(dot|convert|clear|preprocess|postprocess)|splitkv_combine|flash_fwd_combine"
)
_TENSOR = re.compile(
    r"nvjet|wgmma|gmma|hmma|imma|qmma|dmma|tensorop|tensor_op|(?<!\d)(16816|16832|1688|884)"
    r"|s1688|h1688|s884|h884|i8816|i16832|triton_tem_fused|flash_?(attn)?_?(fwd|bwd)|fmha|mha_(fwd|bwd)"
    r"|sdpa|tcgen05|warpgroup|sm90_xmma|sm80_xmma|sm100_",
    re.I,
)

#: where the compute capability is not known
_MAX_BLOCKS_PER_SM = 32


def is_communication(name: str) -> bool:
    """Tell whether a kernel moves data between GPUs (NCCL and its kin)."""
    return bool(_COMMUNICATION.search(name))


def uses_tensor_cores(name: str) -> bool | None:
    """Tell whether a kernel computes on the tensor cores; None if its name says not.

    A kernel of somebody's own, in CUDA C++ or Triton, may use them or not.
    """
    if _COMMUNICATION.search(name) or _BESIDE_ATTENTION.search(name):
        return False
    if _TENSOR.search(name):
        # "sm80_xmma_gemm_f32f32_f32f32_..._ffma" is arithmetic of plain FP32 cores
        return not re.search(r"ffma|simt|f32f32_f32f32", name)
    return False if _PLAIN.search(name) else None


def occupancy_ratio(shape: KernelShape, gpu: GpuLimits) -> float | None:
    """Estimate the share of warps that a multiprocessor holds; None where unknown.

    The most that registers, shared memory, threads and blocks allow (CUDA
    programming guide, compute capabilities), bounded by how many blocks there are.
    """
    threads = shape.threads_per_block
    limits = (gpu.sm_count, gpu.threads_per_sm, gpu.registers_per_sm)
    if not threads or None in (*limits, gpu.shared_memory_per_sm_bytes):
        return None
    sm_count, threads_per_sm, registers_per_sm = (limit or 0 for limit in limits)
    if not sm_count or not threads_per_sm:
        return None
    known = MULTIPROCESSORS.get(gpu.compute_capability or (0, 0))
    held_at_most = Multiprocessor(
        threads_per_sm // WARP,
        known.max_blocks if known else _MAX_BLOCKS_PER_SM,
        gpu.shared_memory_per_sm_bytes or 0,
        registers_per_sm,
    )
    resident = occupancy(
        held_at_most, threads, shape.registers_per_thread, shape.shared_memory_bytes
    )
    warps_per_block = -(-threads // WARP)
    blocks = min(float(resident.blocks), shape.blocks / sm_count)
    return min(blocks * warps_per_block * WARP / threads_per_sm, 1.0)
