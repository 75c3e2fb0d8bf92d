"""A product of FP8 matrices, as cuBLAS offers it."""

import torch

#: of compute capability, where tensor cores have FP8
_FIRST_WITH_FP8 = (8, 9)


def fp8_matmul(a, b, scale_a, scale_b, fast_sums=False, out=None):
    """Multiply m x k by k x n in e4m3, times both scales, and round to float16 once.

    16 must divide k and n; rows of a and columns of b must lie in one piece, as those
    of `weight.t()` do. Scales are float32 tensors of one element on the same device, so
    that the host need not know them. fast_sums has tensor cores add up in fewer bits.
    It is written to `out`, if there is one: float16, m x n.

    Without a GPU, or on one without FP8, the same numbers are multiplied in FP32, and
    fast_sums changes nothing.
    """
    for name, held in (("a", a), ("b", b)):
        if held.dtype != torch.float8_e4m3fn:
            raise ValueError(f"{name} is {held.dtype}, and must be float8_e4m3fn")
        if held.ndim != 2:
            raise ValueError(f"{name} has {held.ndim} sides, and must have 2")
    (m, k), (depth, n) = a.shape, b.shape
    if k != depth:
        raise ValueError(f"{m} x {k} times {depth} x {n}: {k} is not {depth}")
    if k % 16 or n % 16:
        raise ValueError(f"{m} x {k} times {k} x {n}: 16 must divide {k} and {n}")
    if not a.is_contiguous():
        raise ValueError("rows of a must lie in one piece: a.contiguous()")
    if not b.t().is_contiguous():
        raise ValueError("columns of b must lie in one piece: b.t() of n x k does")
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        if not isinstance(scale, torch.Tensor) or scale.numel() != 1:
            raise ValueError(f"{name} must be a tensor of one element")
        if scale.dtype != torch.float32 or scale.device != a.device:
            words = f"{scale.dtype} on {scale.device}"
            raise ValueError(f"{name} is {words}, and must be float32 on {a.device}")
    if a.is_cuda and torch.cuda.get_device_capability(a.device) >= _FIRST_WITH_FP8:
        options = {"out_dtype": torch.float16, "use_fast_accum": fast_sums, "out": out}
        return torch._scaled_mm(a, b, scale_a, scale_b, **options)
    product = ((a.float() @ b.float()) * (scale_a * scale_b)).half()
    return product if out is None else out.copy_(product)
