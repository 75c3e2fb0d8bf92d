"""Calls of attention on a GPU: the kernels that they launch, and what declines them."""

import contextlib
import warnings

import torch
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

CALL = {
    "dtype": "bfloat16",
    "batch": 2,
    "heads": 8,
    "queries": 1024,
    "keys": 1024,
    "head_dim": 64,
    "value_dim": 64,
    "mask": "none",
    "is_causal": False,
    "dropout": 0.0,
    "deterministic": False,
    "allowed": ["cudnn", "flash", "efficient", "math"],
}
BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
CHECKS = {
    "cudnn": cuda.can_use_cudnn_attention,
    "flash": cuda.can_use_flash_attention,
    "efficient": cuda.can_use_efficient_attention,
}


def tensors(call, device="cuda"):
    """Draw queries, keys and values of a call, and make its mask, if it has one."""
    dtype = getattr(torch, call["dtype"])
    sides = [
        (call["queries"], call["head_dim"]),
        (call["keys"], call["head_dim"]),
        (call["keys"], call["value_dim"]),
    ]
    parts = [
        torch.randn(call["batch"], call["heads"], *side, device=device, dtype=dtype)
        for side in sides
    ]
    mask = None
    if call["mask"] != "none":
        shape = call["queries"], call["keys"]
        mask = torch.ones(shape, device=device, dtype=torch.bool).tril()
        if call["mask"] == "any":
            # each token also sees the first of all, and not the one before it
            mask = mask & ~mask.new_ones(shape).tril(-1).triu(-1)
            mask[:, 0] = True
    return parts, mask


def attend(call, device="cuda"):
    """Run a call, and give what comes out."""
    parts, mask = tensors(call, device)
    with _as_set(call):
        return _attended(call, parts, mask)


def kernels(call):
    """Give the names of the kernels of a call, in order; without a GPU a sentence."""
    if not torch.cuda.is_available():
        return "not measured: there is no GPU"
    parts, mask = tensors(call)
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with _as_set(call):
        _attended(call, parts, mask)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=activities, acc_events=True) as profile:
            _attended(call, parts, mask)
            torch.cuda.synchronize()
    launched = [
        event
        for event in profile.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
        and not event.name.startswith(("Memcpy", "Memset"))
    ]
    launched.sort(key=lambda event: event.time_range.start)
    return [event.name for event in launched]


def declined(call, backend):
    """Give PyTorch's words on why a backend declines; nothing if it takes the call."""
    if not torch.cuda.is_available():
        return ["not measured: there is no GPU"]
    (query, key, value), mask = tensors(call)
    params = cuda.SDPAParams(
        query, key, value, mask, call["dropout"], call["is_causal"], False
    )
    with _as_set(call), warnings.catch_warnings(record=True) as words:
        warnings.simplefilter("always")
        takes = CHECKS[backend](params, debug=True)
    return [] if takes else [str(word.message) for word in words] or ["declined"]


def _attended(call, parts, mask):
    return scaled_dot_product_attention(
        *parts,
        attn_mask=mask,
        dropout_p=call["dropout"],
        is_causal=call["is_causal"],
    )


@contextlib.contextmanager
def _as_set(call):
    """Allow some backends, and have algorithms be deterministic, or not."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(call["deterministic"])
    try:
        with sdpa_kernel([BACKENDS[name] for name in call["allowed"]]):
            yield
    finally:
        torch.use_deterministic_algorithms(before)
