"""`warpbook memory` against modules of Transformers on a real GPU, with LoRA of peft.

pytest -m gpu -s tests/gpu/test_memory_of_transformers.py

Weights are random and layers few, in widths as published. Each needs less than 40 GB.
"""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from warpbook_monitors import units
from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.hugging_face import model_of_config
from warpbook_monitors.model_memory.plan import Plan, check_plan
from warpbook_monitors.model_memory.stages import stage_memories

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.gpu

#: how far the calculator may be from what the allocator counts
TOLERANCE = 0.10
BATCH, TOKENS, RANK = 2, 2048, 16
ATTENTION = r".*self_attn\.(q|k|v|o|q_a|q_b|kv_b|kv_a)_proj(_with_mqa)?"
CONFIGS: dict[str, dict[str, Any]] = {
    "Llama 3 8B, 4 layers": {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 4,
        "vocab_size": 128_256,
    },
    "DeepSeek V2 Lite, 4 layers": {
        "model_type": "deepseek_v2",
        "hidden_size": 2048,
        "intermediate_size": 10_944,
        "moe_intermediate_size": 1408,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "num_hidden_layers": 4,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "first_k_dense_replace": 1,
        "q_lora_rank": None,
        "vocab_size": 102_400,
    },
    "DeepSeek V3, 4 layers of 16 experts": {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "intermediate_size": 18_432,
        "moe_intermediate_size": 2048,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "num_hidden_layers": 4,
        "n_routed_experts": 16,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 1,
        "q_lora_rank": 1536,
        "vocab_size": 32_000,
    },
    "Qwen3 30B A3B, 4 layers": {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 4,
        "vocab_size": 151_936,
    },
    "gpt-oss 20B, 4 layers": {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_hidden_layers": 4,
        "num_local_experts": 32,
        "vocab_size": 201_088,
    },
}


@pytest.fixture(autouse=True)
def empty_gpu() -> Iterator[None]:
    """A case starts and ends with nothing of its own on the GPU."""
    gc.collect()
    torch.cuda.empty_cache()
    # what cuBLAS keeps is no part of a model
    torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")
    yield
    gc.collect()
    torch.cuda.empty_cache()


def made(name: str) -> tuple[Any, Model]:
    """Make the module on the GPU, and the description of its configuration."""
    fields = CONFIGS[name]
    kind = {key: value for key, value in fields.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(fields["model_type"], **kind)
    with torch.device("cuda"):
        module = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.bfloat16
        )
    model = model_of_config(fields)
    assert sum(part.numel() for part in module.parameters()) == model.parameters
    return module, model


def is_flash(name: str) -> bool:
    """Transformers has no flash attention with sinks by itself."""
    return not name.startswith("gpt-oss")


def say(what: str, name: str, computed: int, measured: int) -> float:
    ratio = computed / measured
    print(
        f"| {name} | {what} | {units.size(measured)} | {units.size(computed)} "
        f"| {units.share(ratio)} |",
        flush=True,
    )
    return ratio


def step(module: Any, ids: torch.Tensor) -> None:
    """Forward and backward pass; the logits are held, as a caller does."""
    logits = module(input_ids=ids, use_cache=False).logits
    rows = logits.view(-1, logits.shape[-1])
    F.cross_entropy(rows.float(), ids.flatten()).backward()


@pytest.mark.parametrize("precision", ["bf16", "mixed"])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_peak_of_a_step_with_lora(name: str, precision: str) -> None:
    peft = pytest.importorskip("peft")
    before = torch.cuda.memory_allocated()
    module, model = made(name)
    adapted = peft.get_peft_model(
        module,
        peft.LoraConfig(r=RANK, target_modules=ATTENTION),
        autocast_adapter_dtype=precision == "mixed",
    )
    trained = [part for part in adapted.parameters() if part.requires_grad]
    plan = Plan(
        batch=BATCH,
        tokens=TOKENS,
        flash=is_flash(name),
        fused_norms=False,
        precision=precision,
        fused=True,
        lora=RANK,
        lora_targets="attention",
    )
    check_plan(model, plan)
    [stage] = stage_memories(model, plan)
    assert stage.parameters - model.parameters == sum(map(torch.numel, trained))
    optimizer = torch.optim.AdamW(trained, fused=True)
    ids = torch.randint(0, 1000, (BATCH, TOKENS), device="cuda")
    for _ in range(2):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        step(adapted, ids)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    peak = torch.cuda.max_memory_allocated() - before
    ratio = say(f"step with LoRA, {precision}", name, stage.peak_bytes, peak)
    assert ratio == pytest.approx(1, abs=TOLERANCE)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_prompt_and_its_cache(name: str) -> None:
    before = torch.cuda.memory_allocated()
    module, model = made(name)
    plan = Plan(
        batch=BATCH,
        tokens=TOKENS,
        flash=is_flash(name),
        fused_norms=False,
        inference=True,
        dtype="bf16",
    )
    [stage] = stage_memories(model, plan)
    weights = torch.cuda.memory_allocated() - before
    ids = torch.randint(0, 1000, (BATCH, TOKENS), device="cuda")
    with torch.no_grad():
        for _ in range(2):
            filled = None
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            empty = torch.cuda.memory_allocated()
            filled = module(input_ids=ids, use_cache=True, logits_to_keep=1)
            filled = filled.past_key_values
            torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
        # until the next token a window is a view of the prompt
        module(input_ids=ids[:, :1], past_key_values=filled)
    cached = torch.cuda.memory_allocated() - empty
    needed = stage.needed
    ratios = [
        say("weights", name, needed["weights"], weights),
        say("cache", name, needed["cache of keys and values"], cached),
        say(
            "compute buffers",
            name,
            needed["temporary: compute buffers"],
            peak - weights - cached,
        ),
        say("prompt", name, stage.peak_bytes, peak),
    ]
    assert ratios == pytest.approx([1] * len(ratios), abs=TOLERANCE)


def captured(module: Any, ids: torch.Tensor) -> int:
    """Capture a pass, and return the most that it had at once."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    free, _ = torch.cuda.mem_get_info()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        module(input_ids=ids, use_cache=True).logits.float()
    taken = free - torch.cuda.mem_get_info()[0]
    pool = torch.cuda.memory_reserved() - reserved
    print(f"\npool {units.size(pool)}, of the device {units.size(taken)}")
    return torch.cuda.max_memory_allocated() - allocated


@pytest.mark.parametrize("name", ["Llama 3 8B, 4 layers", "Qwen3 30B A3B, 4 layers"])
def test_the_pool_of_a_graph(name: str) -> None:
    """A pass of one token of each sequence, as decoding has it beside its cache."""
    module, model = made(name)
    plan = Plan(batch=256, inference=True, graphs=True, fused_norms=False)
    [stage] = stage_memories(model, plan)
    ids = torch.randint(0, 1000, (plan.batch, 1), device="cuda")
    with torch.no_grad():
        module(input_ids=ids, use_cache=True)
        # the first one has what cuBLAS keeps for the stream of captures
        _, peak = (captured(module, ids) for _ in range(2))
    ratio = say("graph of a step", name, stage.needed["CUDA graphs"], peak)
    assert ratio == pytest.approx(1, abs=TOLERANCE)
