"""The checklist on traces of real GPUs: what an expert would answer of each."""

import gzip
import re
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from warpbook_profiler.checklist.answers import Checklist, Line
from warpbook_profiler.checklist.process import ProcessState
from warpbook_profiler.files.file_profile import read_profile
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.techniques.registry import checklist, questions

DATA = Path(__file__).parents[2] / "data"
TRACES = [
    *sorted((DATA / "traces").glob("*.json.gz")),
    *sorted((DATA / "exam").rglob("*.json.gz")),
    *sorted((DATA / "exam_h100").glob("*.json.gz")),
]
#: a time or a speed that somebody could take for a promise
PROMISE = re.compile(r"\d (ns|µs|ms|s)\b|times as fast")
YES, NO, UNKNOWN, NOT = "yes", "no", "unknown", "not applicable"


@cache
def profile_of(trace: str) -> CellProfile:
    return read_profile(str(DATA / f"{trace}.json.gz")).profile


def answers(trace: str, **known: object) -> dict[str, Line]:
    judged: Checklist = checklist(profile_of(trace), **known)  # type: ignore[arg-type]
    return {line.name: line for line in judged.lines}


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        # float32 throughout, compute-bound, and otherwise in order
        (
            "traces/train_fp32",
            {
                "tensor-cores": NO,
                "mixed-precision": NO,
                "alignment": NOT,
                "cuda-graphs": NOT,
                "fused-optimizer": YES,
                "gradients-to-none": YES,
                "checkpointing": UNKNOWN,
                "no-autograd": NOT,
            },
        ),
        # autocast, recorded without shapes
        (
            "traces/ddp_rank0",
            {
                "tensor-cores": YES,
                "mixed-precision": YES,
                "alignment": UNKNOWN,
                "cuda-graphs": NOT,
            },
        ),
        # a graph of pointwise kernels, without operators
        (
            "traces/graph_replay",
            {"cuda-graphs": YES, "tensor-cores": NOT, "eval-mode": UNKNOWN},
        ),
        ("traces/pinned_h2d", {"pinned-input": YES, "tensor-cores": NOT}),
        ("traces/tiny_kernels", {"cuda-graphs": NO, "batch-size": NOT}),
        # one image: launches, and TF32 with copies between layouts
        (
            "exam_h100/resnet18_one_image",
            {
                "cuda-graphs": NO,
                "batch-size": NO,
                "tensor-cores": YES,
                "channels-last": NO,
                "cudnn-benchmark": UNKNOWN,
                "eval-mode": YES,
                "no-autograd": YES,
            },
        ),
        # what item() takes is not what holds this training back
        (
            "exam_h100/loss_item_each_step",
            {"host-waits": NOT, "cuda-graphs": NO, "tensor-cores": NOT},
        ),
        ("exam_h100/adam_loop_over_tensors", {"fused-optimizer": NO}),
        ("exam/h100/item_before_work_of_the_host", {"host-waits": NO}),
        ("exam/h100/batches_from_pageable", {"pinned-input": NO, "no-autograd": NO}),
        ("exam/h100/odd_vocabulary", {"alignment": NO, "low-precision": NOT}),
        ("exam/h100/bf16_large_product", {"alignment": YES, "low-precision": NO}),
        ("exam/h100/half_conv_channels_first", {"channels-last": NO}),
        ("exam/h100/attention_by_hand", {"fusion": NO, "mixed-precision": YES}),
        ("exam/h100/sdpa_in_bf16", {"fusion": YES}),
        ("exam/h100/loader_in_the_main_process", {"loader-workers": NO}),
        ("exam/h100/anomaly_mode", {"debug-off": NO}),
        ("exam/h100/boolean_masks", {"host-waits": NO, "cuda-graphs": NOT}),
        ("exam/h100/dropout_and_residual", {"eval-mode": NO}),
        ("exam/h100/fp64_products_by_accident", {"mixed-precision": NO}),
        ("cpu/slow_items", {"loader-workers": NO, "tensor-cores": UNKNOWN}),
    ],
)
def test_an_expert_would_agree(trace: str, expected: dict[str, str]) -> None:
    lines = answers(trace)
    assert {name: lines[name].answer for name in expected} == expected


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name.split(".")[0])
def test_each_answer_has_evidence_and_no_number_is_made_up(trace: Path) -> None:
    profile = profile_of(str(trace.relative_to(DATA)).removesuffix(".json.gz"))
    judged = checklist(profile)
    names = [question.name for question in questions()]
    assert [line.name for line in judged.lines] == names
    predicted = [change.sentence for change in profile.changes]
    for line in judged.lines:
        assert line.evidence
        assert bool(line.advice) == (line.answer in (NO, UNKNOWN)), line
        if PROMISE.search(line.advice):
            assert any(sentence in line.advice for sentence in predicted), line


def test_what_is_missing_has_the_gain_that_the_report_predicts() -> None:
    (change,) = (
        change
        for change in profile_of("traces/train_fp32").changes
        if change.name == "bf16"
    )
    line = answers("traces/train_fp32")["mixed-precision"]
    assert line.advice == f"{change.title} {change.sentence}"
    assert line.evidence == change.evidence
    assert line.lab == "mixed-precision"


@pytest.mark.parametrize(
    ("source", "state", "answer", "evidence"),
    [
        (None, None, UNKNOWN, "A trace does not show this setting."),
        (
            "import torch\ntorch.backends.cudnn.benchmark = True\n",
            None,
            YES,
            "The code sets torch.backends.cudnn.benchmark to True (line 2).",
        ),
        ("import torch\n", None, NO, "off unless set"),
        # what the process had counts more than what a line says
        (
            # the process has its own setting again by then
            "with torch.backends.cudnn.flags(benchmark=True):\n    model(x)\n",
            ProcessState(cudnn_benchmark=False),
            YES,
            "The code sets torch.backends.cudnn.benchmark to True (line 1).",
        ),
        (
            "torch.backends.cudnn.benchmark = True\n",
            ProcessState(cudnn_benchmark=False),
            NO,
            "is False in the process",
        ),
    ],
)
def test_a_setting_is_looked_up_where_the_trace_does_not_show_it(
    source: str | None, state: ProcessState | None, answer: str, evidence: str
) -> None:
    lines = answers("exam_h100/resnet18_one_image", source=source, process=state)
    assert lines["cudnn-benchmark"].answer == answer
    assert evidence in lines["cudnn-benchmark"].evidence


@pytest.mark.parametrize(
    ("nodes", "answer", "evidence"),
    [
        (
            0,
            YES,
            "Autograd recorded nothing here. The code uses torch.no_grad (line 1).",
        ),
        # it is used, and not around what ran
        (15, NO, "Autograd made 15 nodes"),
        (None, UNKNOWN, "It is not known whether everything that ran"),
    ],
)
def test_autograd_is_judged_by_what_ran_and_not_by_what_the_code_mentions(
    nodes: int | None, answer: str, evidence: str
) -> None:
    profile = structs.replace(
        profile_of("exam_h100/resnet18_one_image"), autograd_nodes=nodes
    )
    source = "with torch.no_grad():\n    pass\nmodel(x)\n"
    judged = checklist(profile, source)
    (line,) = (line for line in judged.lines if line.name == "no-autograd")
    assert line.answer == answer and evidence in line.evidence


def test_gradients_that_the_code_fills_with_zeros() -> None:
    source = "optimizer.zero_grad(set_to_none=False)\n"
    line = answers("traces/train_fp32", source=source)["gradients-to-none"]
    assert line.answer == NO
    assert "(line 1)" in line.evidence


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("from torch.utils.checkpoint import checkpoint\nx = checkpoint(f, x)\n", YES),
        ("trainer.checkpoint('c.pt')\n", UNKNOWN),
        ("checkpoint = torch.load('c.pt')\nmodel.load(checkpoint)\n", UNKNOWN),
    ],
)
def test_a_file_of_weights_is_no_checkpoint_of_activations(
    source: str, answer: str
) -> None:
    lines = answers("traces/train_fp32", source=source)
    assert lines["checkpointing"].answer == answer


@pytest.mark.parametrize(
    ("peak_bytes", "answer"), [(30 << 30, NOT), (75 << 30, NO), (None, UNKNOWN)]
)
def test_checkpoints_are_for_a_memory_that_is_full(
    peak_bytes: int | None, answer: str
) -> None:
    profile = structs.replace(
        profile_of("traces/train_fp32"), peak_reserved_bytes=peak_bytes
    )
    state = ProcessState(gpu_memory_bytes=80 << 30)
    judged = checklist(profile, process=state)
    (line,) = (line for line in judged.lines if line.name == "checkpointing")
    assert line.answer == answer


def test_images_need_no_sizes_of_eight(tmp_path: Path) -> None:
    trace = DATA / "exam/h100/half_conv_channels_first.json.gz"
    text = gzip.decompress(trace.read_bytes()).decode()
    sized = re.sub(r"\b56, ?56\b", "28, 28", text)
    assert sized != text
    path = tmp_path / "t.json"
    path.write_text(sized)
    judged = checklist(read_profile(str(path)).profile)
    (line,) = (line for line in judged.lines if line.name == "alignment")
    assert line.answer == YES
    # channels do
    path.write_text(re.sub(r"\b256\b(?=[, \d]*\])", "255", sized))
    judged = checklist(read_profile(str(path)).profile)
    (line,) = (line for line in judged.lines if line.name == "alignment")
    assert line.answer == NO and "pad 255 to 256" in line.advice


def test_clipping_many_gradients_at_once_is_no_optimizer_that_does() -> None:
    profile = profile_of("traces/train_fp32")
    clipping = "multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float>>"
    kernels = tuple(
        structs.replace(row, name=clipping) if "multi_tensor" in row.name else row
        for row in profile.kernels
    )
    assert any(row.name == clipping for row in kernels)
    clipped = structs.replace(profile, kernels=kernels)
    lines = {line.name: line for line in checklist(clipped).lines}
    assert lines["fused-optimizer"].answer != YES
