"""Calls of `scaled_dot_product_attention`, what each backend takes, and what ran.

The rules are those of `sdp_utils.cpp` in PyTorch 2.11, for dense tensors on an H100.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from warpbook_labs.lab.python.questions import Question

Call = dict[str, Any]

#: in the order in which they are tried
BACKENDS = ("cudnn", "flash", "efficient", "math")
CHANGES = ("bfloat16", "causal", "pad", "allow")
#: in place of changes where none are enough
IMPOSSIBLE = ["impossible"]
_HALVES = ("bfloat16", "float16")

_SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, "
    "false>(float*, float const*, int, int, int, bool const*, int, bool)"
)
#: kernels of attentions: recorded on an H100 with PyTorch 2.11, but for flash, and for
#: efficient in bfloat16; of math without what is pointwise
_ATTENTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "cudnn": (
        (
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_"
            "64x128x128_4x1x1_cga1x1x1_kernel0_0",
        ),
    ),
    "flash": (
        (
            "void pytorch_flash::flash_fwd_kernel<pytorch_flash::"
            "Flash_fwd_kernel_traits<128, 64, 64, 4, 0, 0, cutlass::bfloat16_t, "
            "pytorch_flash::Flash_kernel_traits<128, 64, 64, 4, cutlass::bfloat16_t>>,"
            " 0, 1, 0, 0, 1, 1, 0>(pytorch_flash::Flash_fwd_params)",
        ),
        (
            "void pytorch_flash::flash_fwd_splitkv_kernel<pytorch_flash::"
            "Flash_fwd_kernel_traits<64, 64, 256, 4, 0, 0, cutlass::half_t, "
            "pytorch_flash::Flash_kernel_traits<64, 64, 256, 4, cutlass::half_t>>,"
            " 0, 0, 0, 1, 1, 0, 1, 0>(pytorch_flash::Flash_fwd_params)",
            "void pytorch_flash::flash_fwd_splitkv_combine_kernel<pytorch_flash::"
            "Flash_fwd_kernel_traits<64, 64, 256, 4, 0, 0, cutlass::half_t, "
            "pytorch_flash::Flash_kernel_traits<64, 64, 256, 4, cutlass::half_t>>,"
            " 8, 2, 1>(pytorch_flash::Flash_fwd_params)",
        ),
    ),
    "efficient": (
        (
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::"
            "AttentionKernel<float, cutlass::arch::Sm80, true, 64, 64, 64, true, true>"
            "::Params)",
        ),
        (
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::"
            "AttentionKernel<cutlass::bfloat16_t, cutlass::arch::Sm80, true, 64, 64, "
            "64, true, true>::Params)",
        ),
    ),
    "math": (
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_"
            "warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
            _SOFTMAX,
            "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_"
            "warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
        ),
    ),
}
#: what the kernel of a fused backend is known by
_MARKS = {
    "cudnn": "cudnn_generated_fort_native_sdpa",
    "flash": "pytorch_flash::flash_fwd",
    "efficient": "fmha_cutlassF",
}
_NORM = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, "
    "float, false>(int, float, float const*, float const*, float const*, float*, "
    "float*, float*)"
)
#: products of projections, as several parts of cuBLAS name them
_PROJECTIONS = (
    "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
    "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_"
    "warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_"
    "128x2_tn_align8>(cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_"
    "tn_align8::Params)",
)
#: what the libraries of attentions compute beside them
_NEIGHBOURS = (
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x"
    "64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn",
    "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float, float, "
    "cudnnTensorStruct, float const*, cudnnTensorStruct, float*)",
    "cudnn_generated_fort_native_layernorm_fwd_bf16_sm90_knob_2_kernel0_0",
    "void flash_rotary::rotary_kernel<cutlass::bfloat16_t, 128>(rotary_params)",
)


def _layer(kernels: tuple[str, ...], rng: random.Random) -> list[str]:
    """Put an attention into a layer with a norm, projections and another softmax."""
    before, behind = rng.sample(_PROJECTIONS, 2)
    before_all, last = rng.sample(_NEIGHBOURS, 2)
    if rng.random() < 0.5:
        return [before_all, _NORM, before, *kernels, behind, _SOFTMAX, last]
    return [before_all, _SOFTMAX, before, *kernels, behind, _NORM, last]


def _reasons(call: Call, backend: str) -> set[str]:
    """Give why a backend declines a call, in the words of `lab.toml`."""
    dtype, dims = call["dtype"], (call["head_dim"], call["value_dim"])
    is_half = dtype in _HALVES
    answers: dict[str, bool] = {"allowed": backend not in call["allowed"]}
    if backend == "cudnn":
        answers |= {
            "dtype": not is_half,
            "dims": any(dim % 8 or dim > 256 for dim in dims),
            "deterministic": call["deterministic"],
        }
    elif backend == "flash":
        answers |= {
            "dtype": not is_half,
            "mask": call["mask"] != "none",
            "dims": dims[0] != dims[1] or dims[0] > 256,
            "causal": call["is_causal"] and call["queries"] != call["keys"],
        }
    elif backend == "efficient":
        aligned = 8 if is_half else 4
        answers |= {
            "dtype": dtype == "float64",
            "dims": any(dim % aligned for dim in dims),
        }
    return {reason for reason, is_given in answers.items() if is_given}


def _backend(call: Call) -> str:
    """Give the first backend that takes a call, or "error"."""
    return next((name for name in BACKENDS if not _reasons(call, name)), "error")


def _score_bytes(call: Call) -> int:
    """Give the size of all scores, if they are written to memory."""
    if _backend(call) != "math":
        return 0
    element_bytes = 8 if call["dtype"] == "float64" else 4
    scores = call["batch"] * call["heads"] * call["queries"] * call["keys"]
    return int(scores * element_bytes)


def _changed(call: Call, changes: tuple[str, ...], wanted: str) -> Call:
    changed = dict(call)
    for change in changes:
        if change == "bfloat16":
            changed["dtype"] = "bfloat16"
        elif change == "causal":
            changed |= {"mask": "none", "is_causal": True}
        elif change == "pad":
            changed |= {name: -(-call[name] // 8) * 8 for name in _DIMS}
        else:
            changed["allowed"] = [wanted]
    return changed


_DIMS = ("head_dim", "value_dim")


def _fewest(call: Call, wanted: str) -> int | None:
    """Give how many changes are enough; None if none are."""
    for changes in _subsets():
        if "causal" in changes and call["mask"] != "causal":
            continue
        if _backend(_changed(call, changes, wanted)) == wanted:
            return len(changes)
    return None


def _subsets() -> Iterator[tuple[str, ...]]:
    for count in range(len(CHANGES) + 1):
        yield from itertools.combinations(CHANGES, count)


def _calls(rng: random.Random) -> dict[str, Call]:
    """Draw a call of each kind, by what is special about it."""
    even, odd = rng.choice((40, 64, 96)), rng.choice((42, 58, 90))
    fours, large = rng.choice((36, 60, 100)), rng.choice((136, 160, 200))
    very_large = rng.choice((264, 288, 320))
    tokens = rng.choice((256, 1024, 2048))
    more, fewer = tokens + 8 * rng.randint(1, 9), tokens - 8 * rng.randint(1, 9)
    without = ["flash", "efficient", "math"]
    kinds: dict[str, Call] = {
        "nothing special": {},
        "float32": {"dtype": "float32"},
        "float32, sides that 4 divides": {"dtype": "float32", "head_dim": fours},
        "float32, odd sides": {"dtype": "float32", "head_dim": odd},
        "float64": {"dtype": "float64"},
        "odd sides": {"head_dim": odd},
        "sides that 4 divides": {"head_dim": fours},
        "large sides": {"head_dim": large},
        "sides of 256": {"head_dim": 256},
        "very large sides": {"head_dim": very_large},
        "a mask": {"mask": "any"},
        "a mask, without cuDNN": {"mask": "any", "allowed": without},
        "a mask and odd sides": {"mask": rng.choice(("any", "causal"))}
        | {"head_dim": odd},
        "a mask and large sides": {"mask": "any", "head_dim": large},
        "is_causal": {"is_causal": True, "allowed": without},
        "is_causal, more keys": {"is_causal": True, "keys": more},
        "is_causal, more keys, without cuDNN": {"is_causal": True, "keys": more}
        | {"allowed": without},
        "is_causal, fewer keys, without cuDNN": {"is_causal": True, "keys": fewer}
        | {"allowed": without},
        "more keys, without cuDNN": {"keys": more, "allowed": without},
        "values of another size": {"value_dim": even + 8},
        "values of another size, without cuDNN": {"value_dim": even + 8}
        | {"allowed": without},
        "values of a very large size": {"value_dim": very_large},
        "values of an odd size": {"value_dim": odd},
        "values that padding makes equal": {"head_dim": odd}
        | {"value_dim": odd + -odd % 8},
        "dropout": {"dropout": rng.choice((0.1, 0.2, 0.3))},
        "deterministic": {"deterministic": True},
        "math alone": {"allowed": ["math"]},
        "math alone, more keys": {"allowed": ["math"], "keys": more},
        "flash alone": {"allowed": ["flash"], "dtype": "float32"},
    }
    drawn = {}
    for place, (about, special) in enumerate(kinds.items()):
        call = {
            "dtype": _HALVES[place % 2],
            "batch": rng.choice((1, 2, 3)),
            "heads": rng.choice((4, 6, 8)),
            "queries": tokens,
            "keys": tokens,
            "head_dim": even,
            "mask": "none",
            "is_causal": False,
            "dropout": 0.0,
            "deterministic": False,
            "allowed": list(BACKENDS),
        }
        call |= special
        allowed = rng.sample(call["allowed"], len(call["allowed"]))
        value_dim = call.get("value_dim", call["head_dim"])
        drawn[about] = {**call, "value_dim": value_dim, "allowed": allowed}
    return drawn


#: calls to be changed, and what is to run then
_WANTED = (
    ("nothing special", "cudnn"),
    ("nothing special", "flash"),
    ("float32", "cudnn"),
    ("float32, odd sides", "efficient"),
    ("float32, sides that 4 divides", "efficient"),
    ("float64", "flash"),
    ("float64", "efficient"),
    ("odd sides", "cudnn"),
    ("a mask", "efficient"),
    ("a mask and odd sides", "cudnn"),
    ("a mask and odd sides", "efficient"),
    ("math alone", "cudnn"),
    ("deterministic", "flash"),
    ("dropout", "cudnn"),
    ("flash alone", "flash"),
    ("values that padding makes equal", "flash"),
    # there is no way
    ("a mask", "flash"),
    ("deterministic", "cudnn"),
    ("very large sides", "cudnn"),
    ("values of another size", "flash"),
)
#: calls of fused backends of which scores are asked for, too
_FUSED = ("nothing special", "float32", "a mask")


def questions(rng: random.Random) -> list[Question]:
    """Draw traces to be read, and calls to be judged and changed."""
    drawn = []
    for attentions in _ATTENTIONS.values():
        for kernels in attentions:
            around = _layer(kernels, rng)
            drawn.append(Question("backend_ran", {"kernels": list(kernels)}, "alone"))
            drawn.append(Question("backend_ran", {"kernels": around}, "in a layer"))
    drawn_calls = _calls(rng)
    for about, call in drawn_calls.items():
        drawn.append(Question("backend", {"call": call}, about))
        for backend in BACKENDS[:3]:
            given = {"call": call, "backend": backend}
            drawn.append(Question("reasons", given, about))
        if _backend(call) in ("math", "error") or about in _FUSED:
            drawn.append(Question("score_bytes", {"call": call}, about))
    for about, wanted in _WANTED:
        given = {"call": drawn_calls[about], "wanted": wanted}
        drawn.append(Question("changes", given, about))
    with_mask = {**drawn_calls["a mask"], "mask": "causal"}
    for call, wanted in (
        (with_mask, "flash"),
        ({**with_mask, "dtype": "float32"}, "flash"),
        ({**with_mask, "head_dim": 58, "value_dim": 58}, "efficient"),
        # there is no way: `is_causal` is declined then
        ({**with_mask, "keys": with_mask["keys"] + 64}, "flash"),
    ):
        given = {"call": call, "wanted": wanted}
        drawn.append(Question("changes", given, "a causal mask"))
    return drawn


def judge(question: Question, answer: Any) -> str:
    """Hold an answer against the rules of the backends."""
    given = question.arguments
    if question.function == "backend_ran":
        right = _ran(given["kernels"])
    elif question.function == "backend":
        right = _backend(given["call"])
    elif question.function == "score_bytes":
        size = _score_bytes(given["call"])
        return "" if answer == size else f"Returned {answer:,}; expected {size:,}."
    elif question.function == "reasons":
        return _off(answer, _reasons(given["call"], given["backend"]))
    else:
        return _wrong_changes(given["call"], given["wanted"], answer)
    return "" if answer == right else f"Returned {answer[:30]!r}; expected {right!r}."


def _ran(kernels: list[str]) -> str:
    for backend, mark in _MARKS.items():
        if any(mark in name for name in kernels):
            return backend
    return "math"


def _off(answer: list[str], right: set[str]) -> str:
    if set(answer) == right and len(answer) == len(right):
        return ""
    words = ", ".join(sorted(right)) or "none: it takes the call"
    return f"Returned {', '.join(answer)[:60] or 'none'}; expected {words}."


def _wrong_changes(call: Call, wanted: str, answer: list[str]) -> str:
    fewest = _fewest(call, wanted)
    if fewest is None:
        words = f"Returned {', '.join(answer)[:60] or 'none'}; expected impossible."
        return "" if answer == IMPOSSIBLE else words
    unknown = [change for change in answer if change not in CHANGES]
    if unknown or len(set(answer)) != len(answer):
        return (
            f"Right is a list of {', '.join(CHANGES)}, each at most once: there is a "
            "way."
        )
    if "causal" in answer and call["mask"] != "causal":
        return "`causal` computes something else here: the mask is not a causal one."
    backend = _backend(_changed(call, tuple(answer), wanted))
    if backend != wanted:
        return f"Then {backend!r} runs; expected what makes {wanted!r} run."
    if fewest != len(answer):
        return f"{wanted!r} runs then, by {len(answer)} changes; {fewest} are enough."
    return ""
