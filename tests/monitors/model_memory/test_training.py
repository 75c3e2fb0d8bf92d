"""Bytes of a step of training, and what parallelism does to each."""

import msgspec
import pytest

from warpbook_monitors.model_memory.attentions import Attention
from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.fit import fit_of
from warpbook_monitors.model_memory.layer import Pass
from warpbook_monitors.model_memory.layers import Mlp, Norm
from warpbook_monitors.model_memory.models import known_names, read_model
from warpbook_monitors.model_memory.plan import Plan, PlanError, check_plan
from warpbook_monitors.model_memory.stage import StageMemory
from warpbook_monitors.model_memory.stages import stage_memories


def step(name: str, **options: object) -> StageMemory:
    return max(stages(name, **options), key=lambda stage: stage.peak_bytes)


def stages(name: str, **options: object) -> list[StageMemory]:
    model, plan = read_model(name), msgspec.convert(options, Plan)
    check_plan(model, plan)
    return stage_memories(model, plan)


def test_a_layer_of_megatron_keeps_what_the_paper_says() -> None:
    """Korthikanti et al. 2022: s·b·h·(34 + 5·a·s/h) bytes, h 128, a 4, s 64, b 2."""
    on = Pass(2, 64, 0, 2, 2, False)
    hidden, heads = 128, 4
    layer = [
        Norm(hidden),
        Attention(hidden, heads, heads, hidden // heads, dropout=True),
        Norm(hidden),
        Mlp(hidden, 4 * hidden, dropout=True),
    ]
    needs = [part.needs(on) for part in layer]
    total = sum(of_layer.kept_bytes for of_layer in needs)
    statistics = 2 * 4 * on.all_tokens
    unit = on.all_tokens * hidden
    assert total - statistics == unit * 34 + 5 * heads * 64 * on.all_tokens
    # table 2: with t tensor-parallel GPUs 10 + 24 / t + 5·a·s / (h·t)
    assert sum(of_layer.whole_bytes for of_layer in needs) - statistics == unit * 10


def test_mixed_precision_with_adam_is_16_bytes_a_parameter() -> None:
    stage = step("llama-2-7b")
    held = stage.needed["weights"] + stage.needed["gradients"]
    held += stage.needed["optimizer states"] + stage.needed["master weights"]
    assert held == 16 * 6_738_415_616


@pytest.mark.parametrize(
    ("optimizer", "bytes_each"),
    [("sgd", 0), ("momentum", 4), ("adam", 8), ("adam8bit", 2 + 8 / 256)],
)
def test_states_of_each_optimizer(optimizer: str, bytes_each: float) -> None:
    stage = step("gpt2", optimizer=optimizer)
    assert stage.needed["optimizer states"] == pytest.approx(
        bytes_each * 124_439_808, abs=8
    )


def test_zero_splits_states_then_gradients_then_weights() -> None:
    """Rajbhandari et al. 2019, figure 1: 7.5B parameters on 64 GPUs, here 6.7B on 8."""
    plain, *split = (
        step("llama-2-7b", data=8, zero=stage, fused=True) for stage in range(4)
    )
    states = plain.needed["optimizer states"] + plain.needed["master weights"]
    for memory in split:
        assert (
            memory.needed["optimizer states"] + memory.needed["master weights"]
            == states // 8
        )
    gradients = [memory.needed["gradients"] for memory in split]
    assert gradients == [plain.needed["gradients"]] + 2 * [
        plain.needed["gradients"] // 8
    ]
    weights = [memory.needed["weights"] for memory in split]
    assert weights == 2 * [plain.needed["weights"]] + [plain.needed["weights"] // 8]
    assert (
        split[2].needed["temporary: gathered by ZeRO 3"]
        > 0
        == split[1].needed["temporary: gathered by ZeRO 3"]
    )
    assert plain.peak_bytes > split[0].peak_bytes > split[1].peak_bytes


def test_tensor_parallelism_splits_all_but_norms_and_sequence_the_rest() -> None:
    one = step("llama-2-7b")
    four = step("llama-2-7b", tensor=4)
    both = step("llama-2-7b", tensor=4, sequence_parallel=True)
    norms = 65 * 4096
    assert four.parameters == (one.parameters - norms) // 4 + norms
    assert four.needed["activations"] > one.needed["activations"] / 4
    assert both.needed["activations"] == pytest.approx(
        one.needed["activations"] / 4, abs=100
    )


def test_keys_and_values_that_are_too_few_are_on_each_gpu() -> None:
    """Eight heads of keys on 16 GPUs: one on each, as Megatron-LM has it."""
    layer = Attention(4096, 32, 8, 128)
    assert layer.parameters(16) == 4096 * 2 * (2 + 1) * 128


def test_the_first_stage_of_a_pipeline_has_most_micro_batches_in_flight() -> None:
    pipeline = stages("llama-2-7b", pipeline=4, micro_batches=8)
    assert [stage.micro_batches for stage in pipeline] == [4, 3, 2, 1]
    assert sum(stage.parameters for stage in pipeline) == 6_738_415_616
    assert [
        stage.needed["temporary: logits and loss"] > 0 for stage in pipeline
    ] == 3 * [False] + [True]
    alone = step("llama-2-7b")
    assert pipeline[0].needed["activations"] == pytest.approx(
        alone.needed["activations"], rel=0.02
    )


def test_a_tied_matrix_is_on_the_last_stage_too() -> None:
    pipeline = stages("gpt2", pipeline=5, micro_batches=5)
    assert sum(stage.parameters for stage in pipeline) == 124_439_808 + 768 * 50257


def test_checkpointing_keeps_the_inputs_of_layers() -> None:
    none, full = (
        step("llama-2-7b", precision="bf16", optimizer="sgd", checkpoint=way)
        for way in ("none", "full")
    )
    assert full.activations["block inputs"] == 32 * 4096 * 4096 * 2
    assert full.peak_bytes < none.peak_bytes


def test_selective_checkpointing_leaves_the_scores_out() -> None:
    scores = step("gpt2", flash=False)
    selective = step("gpt2", flash=False, checkpoint="selective")
    dropped = scores.needed["activations"] - selective.needed["activations"]
    assert dropped == 12 * 5 * 12 * 1024 * 1024


def test_gradients_that_add_up_are_there_at_the_peak() -> None:
    once, twice = (step("gpt2", batch=8, micro_batches=n) for n in (1, 2))
    assert twice.peak_bytes - once.peak_bytes == once.needed["gradients"]


@pytest.mark.parametrize(
    ("name", "kv_heads", "layers"),
    [("llama-2-7b", 32, 32), ("llama-3-8b", 8, 32), ("mixtral-8x7b", 8, 32)],
)
def test_the_cache_of_keys_and_values(name: str, kv_heads: int, layers: int) -> None:
    assert cache(name, batch=2, tokens=1000) == 2 * layers * kv_heads * 128 * 4000


def cache(name: str, **options: object) -> int:
    return step(name, inference=True, **options).needed["cache of keys and values"]


def test_a_window_bounds_the_cache_and_an_encoder_has_none() -> None:
    mistral = cache("mistral-7b", tokens=8192)
    assert mistral == 2 * 32 * 8 * 128 * 4096 * 2
    assert cache("mistral-7b", tokens=8192, tensor=4) == mistral // 4
    assert cache("bert-base") == 0


def test_a_latent_vector_is_cached_in_place_of_keys_and_values() -> None:
    """DeepSeek-AI 2024, section 2.1.4: 512 + 64 of each layer, on each GPU."""
    assert cache("deepseek-v3", tokens=1000) == 2 * 61 * 576 * 1000
    assert cache("deepseek-v3", tokens=1000, tensor=8) == 2 * 61 * 576 * 1000


def test_every_other_layer_of_gpt_oss_looks_back_over_a_window() -> None:
    assert cache("gpt-oss-20b", tokens=8192) == 2 * 2 * 8 * 64 * 12 * (8192 + 128)
    first, second = (
        stage.needed["cache of keys and values"]
        for stage in stages("gpt-oss-20b", inference=True, tokens=8192, pipeline=2)
    )
    assert first == second


def test_quantized_are_the_matrices_of_layers() -> None:
    eight, four = (
        step("llama-2-7b", inference=True, dtype=dtype).needed["weights"]
        for dtype in ("int8", "int4")
    )
    others = 2 * 32_000 * 4096 + 65 * 4096
    matrices = 6_738_415_616 - others
    assert eight == matrices + 2 * others
    assert four == matrices * 4.125 / 8 + 2 * others


@pytest.mark.parametrize(
    ("name", "size_bytes"),
    # the sums of the files at huggingface.co, without headers
    [("gpt-oss-20b", 13_761_264_768), ("gpt-oss-120b", 65_248_815_744)],
)
def test_weights_as_they_are_published(name: str, size_bytes: int) -> None:
    assert step(name, inference=True).needed["weights"] == size_bytes


def test_a_chunk_bounds_the_buffers_and_graphs_keep_theirs() -> None:
    whole, chunk, graphs = (
        step("llama-3-8b", inference=True, batch=32, tokens=4096, **options)
        for options in ({}, {"chunk": 2048}, {"chunk": 2048, "graphs": True})
    )
    buffers = "temporary: compute buffers"
    assert whole.needed[buffers] == 64 * chunk.needed[buffers]
    # logits of each sequence, and in fp32
    assert graphs.peak_bytes - chunk.peak_bytes == 6 * 32 * 128_256


@pytest.mark.parametrize(
    ("targets", "count"),
    # as peft counts them: print_trainable_parameters()
    [("linear", 39_976_960), ("attention", 16_777_216)],
)
def test_adapters_alone_are_trained(targets: str, count: int) -> None:
    lora = step("llama-2-7b", lora=16, lora_targets=targets)
    assert lora.parameters == 6_738_415_616 + count
    assert lora.needed["weights"] == 2 * 6_738_415_616 + 4 * count
    assert lora.needed["gradients"] == 4 * count
    assert lora.needed["optimizer states"] == 8 * count
    half = step("llama-2-7b", lora=16, lora_targets=targets, precision="bf16")
    assert half.needed["gradients"] == 2 * count
    quantized = step("llama-2-7b", lora=16, lora_targets=targets, dtype="int4")
    served = step("llama-2-7b", inference=True, dtype="int4")
    assert quantized.needed["weights"] == served.needed["weights"] + 4 * count


@pytest.mark.parametrize("name", known_names())
@pytest.mark.parametrize("is_inference", [False, True])
def test_what_is_said_to_fit_fits(name: str, is_inference: bool) -> None:
    model = read_model(name)
    fit = fit_of(model, Plan(batch=64, inference=is_inference), 16 * 10**9)
    assert not fit.is_enough or not fit.changes
    if fit.would_fit and fit.changes:
        assert fit.changes[-1].peak_bytes <= 15 * 10**9
    peaks = [change.peak_bytes for change in fit.changes]
    assert peaks == sorted(peaks, reverse=True)


def test_what_is_enough_alone_is_the_one_advice() -> None:
    model = read_model("gpt2")
    plan = Plan(batch=8, precision="bf16", flash=False)
    fit = fit_of(model, plan, 13 * 10**9)
    assert [change.options for change in fit.changes] == ["without --no-flash"]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("resnet-50", {"tensor": 2}, "use --dp with --zero"),
        ("resnet-50", {"tokens": 5}, "leave out --sequence"),
        ("gpt2", {"tokens": 1025}, "--sequence 1024 or less"),
        ("gpt2", {"tensor": 5}, "choose a divisor"),
        ("gpt2", {"pipeline": 13}, "use at most 12"),
        ("gpt2", {"sequence_parallel": True}, "set --tp 2 or more"),
        ("gpt2", {"zero": 1}, "set --dp 2 or more"),
        ("gpt2", {"lora": 8, "tensor": 2}, "use --dp with --zero"),
        ("gpt2", {"lora": 8, "inference": True}, "leave it out with --inference"),
        ("gpt2", {"lora": 8, "precision": "autocast"}, "use mixed"),
        ("resnet-50", {"lora": 8}, "leave out --lora"),
        ("gpt2", {"dtype": "mxfp4"}, "use --dtype int4"),
        ("gpt2", {"side": 224}, "leave out --image"),
        ("vit-b-16", {"side": 384}, "leave out --image"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    name: str, options: dict[str, int], words: str
) -> None:
    model: Model = read_model(name)
    with pytest.raises(PlanError, match=words):
        check_plan(model, msgspec.convert(options, Plan))
