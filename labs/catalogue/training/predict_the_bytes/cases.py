"""Models as their `config.json` describes them, and what they need of a GPU's memory.

All that is right comes from the formulas of `warpbook memory`.
"""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

from warpbook_labs.lab.python.questions import Question
from warpbook_monitors.model_memory.hugging_face import model_of_config
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.stage import StageMemory
from warpbook_monitors.model_memory.stages import stage_memories

Numbers = dict[str, Any]
#: layers, hidden size, heads, heads of keys, head size, intermediate size, vocabulary
_SHAPES = (
    (16, 2048, 32, 8, 64, 8192, 128_256),
    (28, 3072, 24, 8, 128, 8192, 128_256),
    (32, 4096, 32, 8, 128, 14_336, 128_256),
    (28, 3584, 28, 4, 128, 18_944, 152_064),
    (32, 4096, 32, 32, 128, 11_008, 32_000),
    (40, 5120, 40, 8, 128, 13_824, 151_936),
    (24, 896, 14, 2, 64, 4864, 151_936),
    # heads that are wider than their share of the hidden size; few words of one byte
    (28, 1024, 16, 8, 128, 3072, 151_936),
    (20, 2048, 16, 4, 128, 16_384, 512),
)
_PRECISIONS = ("fp32", "bf16", "mixed", "autocast")
_OPTIMIZERS = ("sgd", "momentum", "adam")


class _Moment(NamedTuple):
    """Where the peak of a step is, and the part of it that is to be large."""

    block: str | None
    part: str = "temporaries"
    flash: bool | None = None
    recompute: bool | None = None


#: by what learners see
_MOMENTS = {
    "a peak at the head": _Moment("head"),
    "a peak in a layer's attention": _Moment("layers", flash=False),
    "a peak in a layer's MLP": _Moment("layers", flash=True, recompute=False),
    "a peak in a layer that is recomputed": _Moment("layers", recompute=True),
    "a peak in the first layer": _Moment("layers", "gradients", recompute=True),
    "a peak in a layer with all activations": _Moment("layers", "activations"),
    "a peak at the end of the backward pass": _Moment("embeddings", "optimizer states"),
    "a peak in the optimizer": _Moment(None),
}
#: of so many such peaks the one is asked whose part is largest
_CANDIDATES = 8
#: what one layer has shows in few of them
_DEPTHS = (2, 3), (8, 16, 32)
_BLOCK_TOKENS = 16
#: of a stored weight: here all parameters are quantized, without scales
_BYTES = {"bf16": 2, "int8": 1, "int4": 0.5}
#: counts are exact, but for what does not split evenly among GPUs; a peak is not
_EXACT, _CLOSE, _PEAK = 1e-5, 0.01, 0.1


def _training(config: Numbers, training: Numbers) -> StageMemory:
    plan = Plan(
        batch=training["batch"],
        tokens=training["sequence"],
        precision=training["precision"],
        optimizer=training["optimizer"],
        checkpoint="full" if training["recompute"] else "none",
        flash=training["flash"],
        data=training["gpus"],
        zero=training["zero"],
    )
    [memory] = stage_memories(model_of_config(config), plan)
    return memory


def _states(memory: StageMemory) -> dict[str, float]:
    needed = memory.needed
    return {
        "weights": needed["weights"],
        "gradients": needed["gradients"],
        "optimizer": needed["optimizer states"] + needed["master weights"],
    }


def _cache(config: Numbers, serving: Numbers) -> tuple[float, float]:
    """Give bytes of the weights, and of the cache of all sequences."""
    plan = Plan(
        batch=serving["batch"],
        tokens=serving["tokens"],
        kv_dtype=serving["cache"],
        inference=True,
    )
    [memory] = stage_memories(model_of_config(config), plan)
    weights = _BYTES[serving["weights"]] * memory.parameters
    return weights, memory.needed["cache of keys and values"]


def _sequences(config: Numbers, serving: Numbers, room_bytes: int) -> int:
    """Count sequences whose cache, in whole blocks, fits beside the weights."""
    tokens = -(-serving["tokens"] // _BLOCK_TOKENS) * _BLOCK_TOKENS
    weights, cache_bytes = _cache(config, {**serving, "batch": 1, "tokens": tokens})
    return max(0, int((room_bytes - weights) // cache_bytes))


def questions(rng: random.Random) -> list[Question]:
    """Draw models, and ways to train and to serve each."""
    drawn = []
    for place, shape in enumerate(_SHAPES):
        config = _config(shape, rng)
        about = _kind(config)
        drawn.append(Question("parameters", {"config": config}, about))
        serving = {
            "batch": rng.choice((1, 7, 16, 64)),
            "tokens": rng.choice((500, 4000, 8191, 32_768)),
            "weights": rng.choice(("bf16", "int8", "int4")),
            "cache": ("fp16", "fp8")[place % 2],
        }
        given = {"config": config, "serving": serving}
        drawn.append(Question("kv_cache_bytes", given, about))
        # of short sequences the last block is a large part
        lengths = {
            "long": serving["tokens"],
            "short": 64 + rng.randint(1, 15),
            "full": 64,
        }
        for kind, tokens in lengths.items():
            room = round(_cache(config, serving)[0]) + rng.randint(4, 60) * 10**9
            served = {**serving, "tokens": tokens}
            given = {"config": config, "serving": served, "room_bytes": room}
            what = "blocks" if kind == "full" else "sequences"
            drawn.append(Question("sequences_that_fit", given, f"{kind} {what}"))
        # weights that do not fit, or leave less than a sequence needs
        weights, cache_bytes = _cache(config, {**serving, "batch": 1})
        room = round(weights + rng.choice((-2, -0.1, 0.9)) * cache_bytes)
        given = {"config": config, "serving": serving, "room_bytes": max(room, 0)}
        drawn.append(Question("sequences_that_fit", given, "no room"))
    for precision in _PRECISIONS:
        for zero in range(4):
            config = _config(rng.choice(_SHAPES), rng)
            training = _way(precision, zero, rng)
            # replicas alone split nothing
            training["gpus"] = rng.choice((2, 8, 64))
            given = {"config": config, "training": training}
            kind = f"{precision}, ZeRO {zero}"
            drawn.append(Question("state_bytes", given, kind))
        for recompute in (False, True):
            for flash in (False, True):
                config = _config(rng.choice(_SHAPES), rng)
                training = _way(precision, 0, rng)
                training.update(recompute=recompute, flash=flash)
                if recompute and flash:
                    # what is left for the peak is the optimizer
                    training.update(optimizer="adam", batch=1, sequence=1024)
                given = {"config": config, "training": training}
                kind = "every layer recomputed" if recompute else "nothing recomputed"
                kind = f"{precision}, {kind}"
                drawn.append(Question("activation_bytes", given, kind))
                drawn.append(Question("peak_bytes", given, kind))
    for about, moment in _MOMENTS.items():
        for depths in (*_DEPTHS, *_DEPTHS):
            drawn.append(Question("peak_bytes", _peaking(moment, depths, rng), about))
    return drawn


def _peaking(moment: _Moment, depths: tuple[int, ...], rng: random.Random) -> Numbers:
    """Draw a model and a way to train it whose peak is at a moment."""
    found: list[tuple[float, Numbers]] = []
    while len(found) < _CANDIDATES:
        config = _config(rng.choice(_SHAPES), rng)
        training = _way(rng.choice(_PRECISIONS), 0, rng)
        # what an embedding's gradient needs beside it, which the text leaves out, is
        # small in a deep model
        if moment.block != "embeddings":
            config["num_hidden_layers"] = rng.choice(depths)
            training["sequence"] = rng.choice((128, 512, 1024, 4096, 16_384))
        for key, wanted in (("flash", moment.flash), ("recompute", moment.recompute)):
            training[key] = rng.random() < 0.5 if wanted is None else wanted
        memory = _training(config, training)
        parts = {name: size / memory.peak_bytes for name, size in memory.held.items()}
        if memory.peak_block == moment.block:
            found.append((parts[moment.part], {"config": config, "training": training}))
    return max(found, key=lambda pair: pair[0])[1]


def _config(shape: tuple[int, ...], rng: random.Random) -> Numbers:
    layers, hidden, heads, kv_heads, head_size, intermediate, vocabulary = shape
    return {
        "model_type": rng.choice(("llama", "qwen2")),
        # another depth than the published one, so that nobody looks it up
        "num_hidden_layers": layers + rng.randint(-4, 4),
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_size,
        "intermediate_size": intermediate,
        "vocab_size": vocabulary,
        "tie_word_embeddings": rng.random() < 0.5,
    }


def _kind(config: Numbers) -> str:
    tied = "tied embeddings" if config["tie_word_embeddings"] else "an output matrix"
    return f"{config['model_type']} with {tied}"


def _way(precision: str, zero: int, rng: random.Random) -> Numbers:
    return {
        "precision": precision,
        "optimizer": rng.choice(_OPTIMIZERS),
        "batch": rng.choice((1, 2, 4, 8)),
        "sequence": rng.choice((1024, 2048, 4096)),
        "flash": True,
        "recompute": False,
        "gpus": 1,
        "zero": zero,
    }


def judge(question: Question, answer: Any) -> str:
    """Hold an answer against the formulas."""
    given = question.arguments
    if question.function == "parameters":
        right = model_of_config(given["config"]).parameters
        return "" if answer == right else f"Returned {answer:,}; expected {right:,}."
    if question.function == "sequences_that_fit":
        fit = _sequences(**given)
        return "" if answer == fit else f"Returned {answer:,}; expected {fit:,}."
    if question.function == "kv_cache_bytes":
        return _off(answer, _cache(**given)[1], _EXACT)
    memory = _training(**given)
    if question.function == "activation_bytes":
        return _off(answer, memory.needed["activations"], _CLOSE)
    if question.function == "peak_bytes":
        return _off(answer, memory.peak_bytes, _PEAK)
    states = _states(memory)
    if set(answer) != set(states):
        return f"It has to have the keys {', '.join(states)}, and no others."
    wrong = (
        (name, _off(answer[name], right, _EXACT)) for name, right in states.items()
    )
    return next((f"{name}: {words}" for name, words in wrong if words), "")


def _off(answer: float, right: float, share: float) -> str:
    if math.isclose(answer, right, rel_tol=0, abs_tol=share * abs(right)):
        return ""
    within = f", within {100 * share:.0f} %" if share > _EXACT else ""
    return f"Returned {answer / 1e9:,.6g} GB; expected {right / 1e9:,.6g} GB{within}."
