"""Kernels of CuPy and XLA (JAX, TensorFlow), whose names are made of their operations.

CuPy writes operation and dtypes, `cupy_add__float32_float_float32`, or the operation
alone where it reduces. XLA writes the kind of a fusion and its last operation,
`loop_add_fusion_3`, `input_reduce_fusion`, `gemm_fusion_dot_7`, or `wrapped_add` of an
operation that is alone.
"""

from __future__ import annotations

import re

_CUPY = re.compile(r"cupyx?_\w+$")
#: of CuPy, what computes much with each number, or writes where others do, too
_CUPY_OTHER = re.compile(
    r"tensordot|matmul|correlate|convol|filter|spline|interp|fft|sort|random|scatter"
    r"|bincount|hist|special|solve"
)
_XLA_KINDS = re.compile(
    r"((loop|input|transpose|copy|concatenate)_(\w+_)?fusion|wrapped_[a-z]\w*?)([._]\d+)*$"
)
_XLA_FUSION = re.compile(r"([a-z]+_)*fusion([._]\d+)*$")
#: of XLA, before it wrapped operations that are alone
_XLA_ALONE = re.compile(
    r"(copy|transpose|broadcast|concatenate|convert|reduce|slice|pad|iota)([._]\d+)+$"
)
_XLA_SOFTMAX = re.compile(r"triton_softmax([._]\d+)*$")
_XLA_OTHER = re.compile(
    r"gemm|(?<![a-z])dot(?![a-z])|convolution|custom|scatter|sort|while|triangular"
    r"|cholesky|fft|rng|cudnn|cublas"
)
_XLA_PRODUCT = re.compile(r"(gemm_fusion|triton_gemm)_\w+")


def is_cupy(name: str) -> bool:
    """Tell whether CuPy made a kernel."""
    return bool(_CUPY.match(name))


def is_xla(name: str) -> bool:
    """Tell whether XLA made a kernel of operations that only pass over arrays."""
    if _XLA_OTHER.search(name):
        return False
    return bool(
        _XLA_KINDS.match(name)
        or _XLA_FUSION.match(name)
        or _XLA_ALONE.match(name)
        or _XLA_SOFTMAX.match(name)
    )


def passes(name: str) -> bool:
    """Tell whether a kernel of these only reads and writes arrays."""
    if is_cupy(name):
        return not _CUPY_OTHER.search(name)
    return is_xla(name)


def is_product(name: str) -> bool:
    """Tell whether XLA made a product of it, which is on tensor cores by default."""
    return bool(_XLA_PRODUCT.match(name))
