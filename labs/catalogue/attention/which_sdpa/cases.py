"""Calls of `scaled_dot_product_attention`, what each backend takes, and what ran.

The rules are those of `sdp_utils.cpp` in PyTorch 2.11, for dense tensors on an H100.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from warpbook_labs.lab.questions import Question

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
#: what runs around an attention: projections, a norm, dropout, and a softmax of its own
_BEFORE = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, "
    "float, false>(int, float, float const*, float const*, float const*, float*, "
    "float*, float*)",
    "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
)
_BEHIND = (
    "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN",
    _SOFTMAX,
)


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


def _calls(chance: random.Random) -> dict[str, Call]:
    """Draw a call of each kind, by what is special about it."""
    even, odd = chance.choice((40, 64, 96)), chance.choice((42, 58, 90))
    fours, large = chance.choice((36, 60, 100)), chance.choice((136, 160, 200))
    half, tokens = chance.choice(_HALVES), chance.choice((256, 1024, 2048))
    more = tokens + 8 * chance.randint(1, 9)
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
        "very large sides": {"head_dim": chance.choice((264, 288, 320))},
        "a mask": {"mask": "any"},
        "a mask, without cuDNN": {"mask": "any", "allowed": without},
        "a mask and odd sides": {"mask": chance.choice(("any", "causal"))}
        | {"head_dim": odd},
        "a mask and large sides": {"mask": "any", "head_dim": large},
        "is_causal": {"is_causal": True, "allowed": without},
        "is_causal, more keys": {"is_causal": True, "keys": more},
        "is_causal, more keys, without cuDNN": {"is_causal": True, "keys": more}
        | {"allowed": without},
        "more keys, without cuDNN": {"keys": more, "allowed": without},
        "values of another size": {"value_dim": even + 8},
        "values of another size, without cuDNN": {"value_dim": even + 8}
        | {"allowed": without},
        "values of an odd size": {"value_dim": odd},
        "dropout": {"dropout": chance.choice((0.1, 0.2, 0.3))},
        "deterministic": {"deterministic": True},
        "math alone": {"allowed": ["math"]},
        "flash alone": {"allowed": ["flash"], "dtype": "float32"},
    }
    batch, heads = chance.choice((1, 2, 3)), chance.choice((4, 6, 8))
    usual = {
        "dtype": half,
        "batch": batch,
        "heads": heads,
        "queries": tokens,
        "keys": tokens,
        "head_dim": even,
        "mask": "none",
        "is_causal": False,
        "dropout": 0.0,
        "deterministic": False,
        "allowed": list(BACKENDS),
    }
    drawn = {}
    for about, special in kinds.items():
        call = {**usual, **special}
        drawn[about] = {**call, "value_dim": call.get("value_dim", call["head_dim"])}
    return drawn


#: calls to be changed, and what is to run then
_WANTED = (
    ("nothing special", "cudnn"),
    ("nothing special", "flash"),
    ("float32", "cudnn"),
    ("float32, odd sides", "efficient"),
    ("float64", "flash"),
    ("odd sides", "cudnn"),
    ("a mask", "efficient"),
    ("a mask and odd sides", "cudnn"),
    ("a mask and odd sides", "efficient"),
    ("math alone", "cudnn"),
    ("deterministic", "flash"),
    ("dropout", "cudnn"),
    # there is no way
    ("a mask", "flash"),
    ("deterministic", "cudnn"),
    ("very large sides", "cudnn"),
)


def questions(chance: random.Random) -> list[Question]:
    """Draw traces to be read, and calls to be judged and changed."""
    drawn = []
    for attentions in _ATTENTIONS.values():
        for kernels in attentions:
            around = [*_BEFORE, *kernels, *_BEHIND]
            drawn.append(Question("backend_ran", {"kernels": list(kernels)}, "alone"))
            drawn.append(Question("backend_ran", {"kernels": around}, "in a layer"))
    drawn_calls = _calls(chance)
    for about, call in drawn_calls.items():
        drawn.append(Question("backend", {"call": call}, about))
        for backend in BACKENDS[:3]:
            given = {"call": call, "backend": backend}
            drawn.append(Question("reasons", given, about))
        if _backend(call) == "math" or about in ("nothing special", "float32"):
            drawn.append(Question("score_bytes", {"call": call}, about))
    for about, wanted in _WANTED:
        given = {"call": drawn_calls[about], "wanted": wanted}
        drawn.append(Question("changes", given, about))
    with_mask = {**drawn_calls["a mask"], "mask": "causal"}
    for call, wanted in (
        (with_mask, "flash"),
        ({**with_mask, "dtype": "float32"}, "flash"),
        ({**with_mask, "head_dim": 58, "value_dim": 58}, "efficient"),
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
        return "" if answer == size else f"It is {answer:,}; right is {size:,}."
    elif question.function == "reasons":
        return _off(answer, _reasons(given["call"], given["backend"]))
    else:
        return _wrong_changes(given["call"], given["wanted"], answer)
    return "" if answer == right else f"It is {answer[:30]!r}; right is {right!r}."


def _ran(kernels: list[str]) -> str:
    for backend, attentions in _ATTENTIONS.items():
        if backend != "math" and any(names[0] in kernels for names in attentions):
            return backend
    return "math"


def _off(answer: list[str], right: set[str]) -> str:
    if set(answer) == right and len(answer) == len(right):
        return ""
    words = ", ".join(sorted(right)) or "none: it takes the call"
    return f"These are {', '.join(answer)[:60] or 'none'}; right is {words}."


def _wrong_changes(call: Call, wanted: str, answer: list[str]) -> str:
    fewest = _fewest(call, wanted)
    if fewest is None:
        words = f"These are {', '.join(answer)[:60] or 'none'}; right is impossible."
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
        return f"Then {backend!r} runs; right is what makes {wanted!r} run."
    if fewest != len(answer):
        return f"{wanted!r} runs then, by {len(answer)} changes; {fewest} are enough."
    return ""
