"""Which ATen calls a program may ask for: none that views memory, or names a device.

Each makes results whose shape its operands and plain numbers say.
"""

from __future__ import annotations

from functools import lru_cache

_POINTWISE = """
abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu
clamp clamp_max clamp_min copysign cos cosh div elu eq erf erfc erfinv exp exp2 expm1
floor floor_divide fmax fmin fmod frac ge gelu gt hardsigmoid hardswish hardtanh hypot
isfinite isinf isnan isneginf isposinf le leaky_relu lerp log log10 log1p log2
log_sigmoid_forward logaddexp logical_and logical_not logical_or logical_xor logit lt
masked_fill maximum minimum mish mul nan_to_num ne neg pow reciprocal relu remainder
round rsqrt rsub sigmoid sign signbit silu sin sinh softplus sqrt square sub tan tanh
threshold trunc where xlogy __and__ __or__ __xor__ __lshift__ __rshift__ elu_backward
gelu_backward hardsigmoid_backward hardswish_backward hardtanh_backward
leaky_relu_backward log_sigmoid_backward mish_backward sigmoid_backward silu_backward
softplus_backward tanh_backward threshold_backward
"""
_REDUCTIONS = """
all amax amin aminmax any argmax argmin cummax cummin cumprod cumsum linalg_vector_norm
logcumsumexp logsumexp max mean median min nanmedian nansum norm prod std std_mean sum
var var_mean
"""
_LAYERS = """
_safe_softmax _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _log_softmax
_log_softmax_backward_data _native_batch_norm_legit _softmax _softmax_backward_data
avg_pool2d avg_pool2d_backward binary_cross_entropy binary_cross_entropy_backward
binary_cross_entropy_with_logits constant_pad_nd embedding embedding_dense_backward
huber_loss huber_loss_backward max_pool2d_with_indices max_pool2d_with_indices_backward
mse_loss mse_loss_backward native_batch_norm native_batch_norm_backward
native_dropout_backward native_group_norm native_group_norm_backward native_layer_norm
native_layer_norm_backward nll_loss_backward nll_loss_forward reflection_pad2d
smooth_l1_loss smooth_l1_loss_backward upsample_bilinear2d upsample_nearest2d
"""
_MOVING = """
arange cat diag_embed eye flip gather index index_add index_copy index_fill index_put
_index_put_impl index_select linspace masked_scatter new_full repeat roll rot90 scatter
scatter_add scatter_reduce select_backward select_scatter slice_backward slice_scatter
sort stack topk tril tril_indices triu triu_indices searchsorted bucketize take
"""
_RANDOM = """
bernoulli exponential multinomial native_dropout normal rand rand_like randint
randint_like randn randn_like random randperm uniform
"""
_OPTIMIZERS = """
_foreach_abs _foreach_add _foreach_addcdiv _foreach_addcmul _foreach_clamp_max
_foreach_clamp_min _foreach_div _foreach_exp _foreach_lerp _foreach_log _foreach_max
_foreach_maximum _foreach_minimum _foreach_mul _foreach_neg _foreach_norm _foreach_pow
_foreach_reciprocal _foreach_rsqrt _foreach_sign _foreach_sqrt _foreach_sub
_foreach_zero _amp_foreach_non_finite_check_and_unscale _amp_update_scale _fused_adam
_fused_adamw _fused_sgd
"""
#: their time goes to products
PRODUCTS = frozenset(
    "mm bmm addmm baddbmm addbmm dot mv addmv _int_mm _scaled_mm convolution "
    "convolution_backward".split()
)
#: PyTorch has cuBLAS do them, which needs a handle
OF_CUBLAS = PRODUCTS - {"convolution", "convolution_backward"}
#: they are given a seed
RANDOM = frozenset(_RANDOM.split())
#: they compute nothing
MOVING = frozenset((*_MOVING.split(), "embedding"))
_TEXTS = _POINTWISE, _REDUCTIONS, _LAYERS, _MOVING, _RANDOM, _OPTIMIZERS
ALLOWED = PRODUCTS.union(*(text.split() for text in _TEXTS))
#: of what they read, only what is chosen
CHOOSING = frozenset(("embedding", "gather", "index", "index_select", "take"))
#: of what they write, only a part
PUTTING = frozenset(
    "_index_put_impl index_copy index_fill index_put scatter scatter_add".split()
)
_NAMES = {"mm": "matmul", "bmm": "matmul", "dot": "matmul", "mv": "matmul"}


@lru_cache(4096)
def base_of(operation: str) -> str | None:
    """Give an ATen call's name without overload and underscore, if it is allowed."""
    space, _, rest = operation.partition(".")
    base = rest.partition(".")[0]
    if space != "aten":
        return None
    # what ends in two is an operator of Python's
    name = base if base.endswith("__") else base.removesuffix("_")
    return name if name in ALLOWED else None


def spoken(operation: str) -> str | None:
    """Give what learners call it."""
    base = base_of(operation)
    return base if base is None else _NAMES.get(base, base)
