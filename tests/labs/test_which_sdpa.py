"""Rules of attention's backends, held against recorded traces and PyTorch itself."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.verdict.analysis import analyse

LAB = "which-sdpa"

DATA = Path(__file__).parents[1] / "data"
#: cells that were recorded on an H100, and the operator that says which backend it was
RECORDED = {
    "exam/h100/sdpa_in_bf16": "aten::_scaled_dot_product_cudnn_attention",
    "exam/h100/sdpa_in_fp32": "aten::_scaled_dot_product_efficient_attention",
    "exam/h100/sdpa_by_the_math_backend": "aten::_scaled_dot_product_attention_math",
    "traces/train_fp32": "aten::_scaled_dot_product_efficient_attention",
}


def names(trace: str, category: str) -> list[str]:
    with gzip.open(DATA / f"{trace}.json.gz") as file:
        events = json.load(file)["traceEvents"]
    chosen = [event for event in events if event.get("cat") == category]
    return [
        event["name"] for event in sorted(chosen, key=lambda event: float(event["ts"]))
    ]


@pytest.mark.parametrize("trace", RECORDED)
def test_kernels_that_were_recorded_say_which_backend_ran(
    written: ModuleType, trace: str
) -> None:
    assert RECORDED[trace] in names(trace, "cpu_op")
    backend = written.backend_ran(names(trace, "kernel"))
    assert backend in RECORDED[trace]


def test_what_is_asked_of_traces_was_recorded(lab: LoadedLab) -> None:
    recorded = {name for trace in RECORDED for name in names(trace, "kernel")}
    attentions = [
        question.arguments["kernels"]
        for question in lab.cases.questions(random.Random(1))
        if question.function == "backend_ran" and question.about == "alone"
    ]
    assert sum(set(kernels) <= recorded for kernels in attentions) == 3


@pytest.mark.parametrize("trace", ["attention_by_hand", "sdpa_by_the_math_backend"])
def test_advice_on_attention_leads_to_the_lab(lab: LoadedLab, trace: str) -> None:
    path = DATA / "exam" / "h100" / f"{trace}.json.gz"
    profile = analyse(*read_chrome_trace(str(path)))
    labs = {change.name: change.lab for change in profile.changes}
    assert lab.lab.id in (labs.get("sdpa"), labs.get("sdpa-backend"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_math_writes_as_many_bytes_of_scores_as_the_rules_say(
    given: dict[str, Any], written: ModuleType, dtype: str
) -> None:
    torch = pytest.importorskip("torch")
    modes = pytest.importorskip("torch.utils._python_dispatch")
    sizes: list[int] = []

    class Softmaxes(modes.TorchDispatchMode):  # type: ignore[name-defined, misc]
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if "softmax" in str(function):
                sizes.append(args[0].numel() * args[0].element_size())
            return function(*args, **(kwargs or {}))

    call = {**given["CALL"], "dtype": dtype, "allowed": ["math"]}
    call |= {"queries": 40, "keys": 24}
    with Softmaxes(), torch.no_grad():
        given["attend"](call, device="cpu")
    assert sizes == [written.score_bytes(call)]


def test_changes_compute_the_same_attention(given: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    attention = torch.nn.functional.scaled_dot_product_attention
    call = {**given["CALL"], "dtype": "float64", "queries": 16, "keys": 16}
    call |= {"head_dim": 58, "value_dim": 58, "mask": "causal"}
    parts, mask = given["tensors"](call, device="cpu")
    right = attention(*parts, attn_mask=mask)
    torch.testing.assert_close(attention(*parts, is_causal=True), right)
    padded = [torch.nn.functional.pad(part, (0, 6)) for part in parts]
    wide = attention(*padded, attn_mask=mask, scale=58**-0.5)
    torch.testing.assert_close(wide[..., :58], right)
    assert not wide[..., 58:].any()


def test_another_mask_is_no_causal_one_and_leaves_each_token_something(
    given: dict[str, Any],
) -> None:
    call = {**given["CALL"], "queries": 8, "keys": 8}
    _, causal = given["tensors"]({**call, "mask": "causal"}, device="cpu")
    _, other = given["tensors"]({**call, "mask": "any"}, device="cpu")
    assert other.any(-1).all() and (other != causal).any()


def test_without_a_gpu_it_is_said_that_nothing_is_measured(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    words = "not measured: there is no GPU"
    assert given["kernels"](given["CALL"]) == words
    assert given["declined"](given["CALL"], "flash") == [words]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (["other"], "a list of bfloat16, causal, pad, allow"),
        (["allow", "allow"], "each at most once"),
        (["causal"], "not a causal one"),
        ([], "Then 'math' runs"),
        (["pad", "bfloat16", "allow"], "3 changes; 1 are enough"),
        (["pad"], ""),
        (["impossible"], "there is a way"),
    ],
)
def test_changes_that_are_wrong_are_told_why(
    lab: LoadedLab, given: dict[str, Any], answer: list[str], words: str
) -> None:
    call = {**given["CALL"], "mask": "any", "head_dim": 58, "value_dim": 58}
    question = Question("changes", {"call": call, "wanted": "cudnn"})
    reason = lab.cases.judge(question, answer)
    assert words in reason and bool(reason) == bool(words)
