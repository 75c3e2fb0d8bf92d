"""Plans of parallel training, and a model of what a step of each costs.

Memory is that of `warpbook memory`; time and traffic are the sums that the text gives.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from warpbook_labs.lab.python.questions import Question
from warpbook_monitors.model_memory.attentions import Attention
from warpbook_monitors.model_memory.description import Block, Model
from warpbook_monitors.model_memory.layers import (
    Embedding,
    Logits,
    Mlp,
    Norm,
)
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.stage import StageMemory
from warpbook_monitors.model_memory.stages import stage_memories

Numbers = dict[str, Any]
#: what a plan has, and the least and the most of each
_KEYS = {
    "tensor": (1, 1024),
    "pipeline": (1, 1024),
    "data": (1, 4096),
    "chunks": (1, 64),
    "micro_batch": (1, 4096),
    "sequence_parallel": (0, 1),
    "sharded_optimizer": (0, 1),
    "recompute": (0, 1),
}
#: layers, hidden size, intermediate size, vocabulary, and clusters to train on
_MODELS: dict[str, tuple[int, int, int, int, tuple[int, ...]]] = {
    "1B": (16, 2048, 8192, 128_256, (4, 8, 16)),
    "3B": (24, 3072, 8192, 128_256, (8, 16, 24, 32)),
    "8B": (32, 4096, 14_336, 128_256, (8, 16, 32)),
    "13B": (40, 5120, 13_824, 32_000, (16, 32, 64)),
    "34B": (48, 8192, 22_016, 32_000, (32, 48, 64, 128)),
    "70B": (80, 8192, 28_672, 128_256, (64, 128, 256)),
}
_HEAD_SIZE, _KV_HEADS = 128, 8
_EXACT, _CLOSE, _SLOWER = 1e-6, 0.01, 1.05
_GROUPS = ("tensor", "pipeline", "data")


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _described(model: Numbers) -> Model:
    """Describe it to `warpbook memory`."""
    hidden = model["hidden"]
    attention = Attention(
        hidden, model["heads"], model["kv_heads"], model["head_size"], causal=True
    )
    mlp = Mlp(hidden, model["intermediate"], "silu", gated=True)
    head = (Norm(hidden), Logits(hidden, model["vocabulary"]))
    blocks = (
        Block("embeddings", (Embedding(model["vocabulary"], hidden),), edge=True),
        Block("layers", (Norm(hidden), attention, Norm(hidden), mlp), model["layers"]),
        Block("head", head, edge=True),
    )
    return Model("a model", "drawn", blocks, model["sequence"])


def _micro_batches(plan: Numbers, batch: int) -> int:
    return int(batch // (plan["data"] * plan["micro_batch"]))


def _memory(model: Numbers, batch: int, plan: Numbers) -> float:
    """Give bytes on the fullest GPU, without what passes within a layer."""
    count = _micro_batches(plan, batch)
    options = Plan(
        batch=plan["micro_batch"],
        checkpoint="full" if plan["recompute"] else "none",
        tensor=plan["tensor"],
        sequence_parallel=bool(plan["sequence_parallel"]),
        pipeline=plan["pipeline"],
        micro_batches=count,
        data=plan["data"],
        zero=1 if plan["sharded_optimizer"] else 0,
    )
    stages = stage_memories(_described(model), options)
    return max(_on_stage(stage, plan, count) for stage in stages)


def _on_stage(stage: StageMemory, plan: Numbers, count: int) -> float:
    chunks, stages = plan["chunks"], plan["pipeline"]
    kept: float = stage.needed["activations"]
    if chunks > 1:
        # the warm-up of Megatron-LM's interleaved schedule, and the one that follows
        ahead = 2 * (stages - stage.stage - 1) + (chunks - 1) * stages + 1
        kept *= min(ahead, count * chunks) / (chunks * stage.micro_batches)
    resident = ("weights", "gradients", "optimizer states", "master weights")
    passing = stage.needed["temporary: logits and loss"]
    return sum(stage.needed[name] for name in resident) + kept + passing


def _sent(model: Numbers, batch: int, plan: Numbers) -> dict[str, float]:
    """Give bytes that a GPU in the middle of the pipeline sends in a step."""
    tensor, data, count = plan["tensor"], plan["data"], _micro_batches(plan, batch)
    states = 2.0 * plan["micro_batch"] * model["sequence"] * model["hidden"]
    layers = model["layers"] / plan["pipeline"]
    passes = 3 if plan["recompute"] else 2
    gradients = 2 * layers * (_matrices(model) / tensor + 2.0 * model["hidden"])
    boundary = states / tensor if plan["sequence_parallel"] else states
    crossings = 2 * plan["chunks"] if plan["pipeline"] > 1 else 0
    return {
        "tensor": count * layers * passes * 2 * 2 * (tensor - 1) / tensor * states,
        "pipeline": count * crossings * boundary,
        "data": 2 * (data - 1) / data * gradients,
    }


def _matrices(model: Numbers) -> float:
    heads = (model["heads"] + model["kv_heads"]) * model["head_size"]
    return float(model["hidden"] * (2 * heads + 3 * model["intermediate"]))


def _spans(plan: Numbers) -> dict[str, int]:
    """Give how many neighbouring GPUs a group lies within."""
    tensor = plan["tensor"]
    beside = tensor * plan["data"]
    return {"tensor": tensor, "data": beside, "pipeline": beside * plan["pipeline"]}


def _step(model: Numbers, cluster: Numbers, batch: int, plan: Numbers) -> Numbers:
    """Give the seconds of a step, part by part, and the whole as `step`."""
    tensor, count = plan["tensor"], _micro_batches(plan, batch)
    tokens = plan["micro_batch"] * model["sequence"]
    layers = model["layers"] / plan["pipeline"]
    repeats = 4 if plan["recompute"] else 3
    scores = 4.0 * tokens * model["sequence"] * model["heads"] * model["head_size"]
    of_layer = (2.0 * tokens * _matrices(model) + scores) / tensor
    of_logits = 2.0 * tokens * model["hidden"] * model["vocabulary"] / tensor
    work = layers * repeats * of_layer + 3 * of_logits
    compute_s = count * work / cluster["flops_per_s"]
    compute_s += count * layers * repeats * cluster["layer_overhead_s"]
    passes = repeats - 1
    messages = {
        # a ring has 2 (n - 1) messages one after the other
        "tensor": count * layers * passes * 2 * 2 * (tensor - 1),
        "pipeline": count * 2 * plan["chunks"] if plan["pipeline"] > 1 else 0,
        "data": 2 * (plan["data"] - 1),
    }
    sent, spans, parts = _sent(model, batch, plan), _spans(plan), {"compute": compute_s}
    for group in _GROUPS:
        inside = cluster["gpus_per_node"] % spans[group] == 0
        place = "node" if inside else "network"
        parts[group] = messages[group] * cluster[f"{place}_latency_s"]
        parts[group] += sent[group] / cluster[f"{place}_bytes_per_s"]
    busy_s = parts["compute"] + parts["tensor"] + parts["pipeline"]
    waiting = (plan["pipeline"] - 1) / plan["chunks"] / count
    parts["bubble"] = waiting * busy_s
    return {**parts, "step": sum(parts.values())}


def _wrong_plan(model: Numbers, cluster: Numbers, batch: int, plan: Numbers) -> str:
    """Say which rule a plan breaks; nothing if it can be run."""
    if set(plan) != set(_KEYS):
        return f"A plan has the keys {', '.join(_KEYS)}, and no others."
    for key, (least, most) in _KEYS.items():
        if not least <= plan[key] <= most:
            return f"`{key}` is {plan[key]:.6g}; it is {least} to {most}."
    tensor, pipeline, data = (plan[group] for group in _GROUPS)
    if tensor * pipeline * data != cluster["gpus"]:
        return "tensor x pipeline x data is not the number of GPUs."
    for key in ("heads", "kv_heads", "intermediate", "vocabulary"):
        if model[key] % tensor:
            return f"`tensor` does not divide `{key}`."
    if model["layers"] % (pipeline * plan["chunks"]):
        return "pipeline x chunks does not divide the layers."
    if batch % (data * plan["micro_batch"]):
        return "data x micro_batch does not divide the global batch."
    if plan["chunks"] > 1 and (pipeline == 1 or _micro_batches(plan, batch) % pipeline):
        words = "needs a pipeline that divides the number of micro-batches"
        return f"An interleaved schedule (`chunks` above 1) {words}."
    if plan["sequence_parallel"] and (tensor == 1 or model["sequence"] % tensor):
        return "`sequence_parallel` splits the sequence among 2 or more tensor GPUs."
    if plan["sharded_optimizer"] and data == 1:
        return "`sharded_optimizer` needs 2 or more data-parallel GPUs."
    return ""


def _plans(model: Numbers, cluster: Numbers, batch: int) -> Iterator[Numbers]:
    """List the valid plans that have what costs no time."""
    gpus, layers = cluster["gpus"], model["layers"]
    shapes = (
        (tensor, pipeline, gpus // tensor // pipeline, chunks)
        for tensor in _divisors(math.gcd(gpus, model["kv_heads"]))
        for pipeline in _divisors(math.gcd(gpus // tensor, layers))
        for chunks in _divisors(layers // pipeline)
    )
    for tensor, pipeline, data, chunks in shapes:
        for micro_batch in _divisors(batch // data if batch % data == 0 else 0):
            for recompute in (0, 1):
                flags = (int(tensor > 1), int(data > 1), recompute)
                values = (tensor, pipeline, data, chunks, micro_batch, *flags)
                plan = dict(zip(_KEYS, values, strict=True))
                if not _wrong_plan(model, cluster, batch, plan):
                    yield plan


def _best(
    model: Numbers, cluster: Numbers, batch: int, plans: list[Numbers]
) -> Numbers | None:
    """Give the step of the fastest plan that fits; None where none does."""

    def seconds(plan: Numbers) -> float:
        return float(_step(model, cluster, batch, plan)["step"])

    for plan in sorted(plans, key=seconds):
        if _memory(model, batch, plan) <= cluster["room_bytes"]:
            return _step(model, cluster, batch, plan)
    return None


#: what a question's best plan can't do without, by what learners see: models to
#: look among, and the plans of somebody who leaves it out
_SCENES: dict[str, tuple[tuple[str, ...], Callable[[Numbers], bool]]] = {
    "a case for replicas": (("1B", "3B", "8B"), lambda plan: plan["data"] == 1),
    "a case for larger micro-batches": (
        ("1B", "3B"),
        lambda plan: plan["micro_batch"] == 1,
    ),
    "a case for tensor parallelism": (
        ("8B", "13B", "34B"),
        lambda plan: plan["tensor"] == 1,
    ),
    "a case for a pipeline": (
        ("13B", "34B", "70B"),
        lambda plan: plan["pipeline"] == 1,
    ),
    "a case for an interleaved pipeline": (
        ("13B", "34B", "70B"),
        lambda plan: plan["chunks"] == 1,
    ),
    "a case for recomputation": (
        ("34B", "70B"),
        lambda plan: plan["recompute"] == 0,
    ),
}
#: so many times slower is the best of those plans, if one fits at all
_CLEAR = 1.08
#: plans whose memory, traffic and time are asked for
_SHAPES: dict[str, Callable[[Numbers], bool]] = {
    "tensor parallelism": lambda plan: plan["tensor"] > 1 == plan["pipeline"],
    "a pipeline": lambda plan: (
        plan["pipeline"] > 3 and plan["chunks"] == 1 and not plan["recompute"]
    ),
    "an interleaved pipeline": lambda plan: plan["chunks"] > 1 < plan["data"],
    "recomputation": lambda plan: plan["recompute"] == 1 < plan["pipeline"],
    "data parallelism": lambda plan: plan["data"] > 2 == plan["tensor"],
    "micro-batches": lambda plan: plan["micro_batch"] > 1 < plan["tensor"],
    # within no node that they divide
    "three replicas side by side": lambda plan: plan["data"] == 3 > 2 * plan["tensor"],
}


def questions(rng: random.Random) -> list[Question]:
    """Draw pipelines, plans to be priced, and clusters that want a plan."""
    drawn = []
    for chunks in (1, 2, rng.choice((3, 4, 5))):
        stages = rng.choice((4, 8, 16))
        sizes = {"stages": stages, "chunks": chunks}
        micro_batches = stages * rng.randint(2, 8)
        about = "one chunk a GPU" if chunks == 1 else "interleaved chunks"
        given = {**sizes, "micro_batches": micro_batches}
        drawn.append(Question("bubble_share", given, about))
    for about, is_shape in _SHAPES.items():
        for with_flags in (True, False):
            case, plan = _priced(is_shape, with_flags, rng)
            model, batch = case["model"], case["batch"]
            given = {"model": model, "batch": batch, "plan": plan}
            drawn.append(Question("memory_bytes", given, about))
            drawn.append(Question("sent_bytes", given, about))
            drawn.append(Question("step_s", {**case, "plan": plan}, about))
    for about, (names, leaves_out) in _SCENES.items():
        drawn.append(Question("plan", _planned(names, leaves_out, rng), about))
    drawn.append(Question("plan", _tempting(rng), "a case against interleaving"))
    for key in ("intermediate", "vocabulary"):
        drawn.append(Question("plan", _undivided(key, rng), "sizes that do not split"))
    drawn.append(Question("plan", _alone(rng), "a batch for one replica"))
    return drawn


def _case(names: tuple[str, ...], rng: random.Random) -> Numbers:
    layers, hidden, intermediate, vocabulary, sizes = _MODELS[rng.choice(names)]
    gpus = rng.choice(sizes)
    sequence = rng.choice((4096, 8192, 16_384, 32_768))
    capacity = rng.choice((40, 80, 141))
    model = {
        "layers": layers,
        "hidden": hidden,
        "heads": hidden // _HEAD_SIZE,
        "kv_heads": _KV_HEADS,
        "head_size": _HEAD_SIZE,
        "intermediate": intermediate,
        "vocabulary": vocabulary,
        "sequence": sequence,
    }
    cluster = {
        "gpus": gpus,
        "gpus_per_node": rng.choice((4, 8)),
        "room_bytes": round(0.9 * capacity * 10**9),
        "flops_per_s": rng.choice((150, 400, 450)) * 10**12,
        "layer_overhead_s": rng.choice((1e-4, 2e-4, 4e-4)),
        "node_bytes_per_s": rng.choice((300, 450)) * 10**9,
        "node_latency_s": rng.choice((4e-6, 8e-6)),
        "network_bytes_per_s": round(rng.choice((6.25, 12.5, 25, 50)) * 10**9),
        "network_latency_s": rng.choice((1e-5, 2e-5)),
    }
    batch = max(1, gpus * rng.choice((1, 2, 3, 5, 6, 8)) * 4096 // sequence)
    return {"model": model, "cluster": cluster, "batch": batch}


def _priced(
    is_shape: Callable[[Numbers], bool], with_flags: bool, rng: random.Random
) -> tuple[Numbers, Numbers]:
    """Draw a valid plan of a shape, whether or not it fits."""
    while True:
        case = _case(("3B", "8B", "13B", "34B", "70B"), rng)
        fit = [plan for plan in _plans(**case) if is_shape(plan)]
        if fit:
            plan = rng.choice(fit)
            if not with_flags:
                plan = {**plan, "sequence_parallel": 0, "sharded_optimizer": 0}
                # the number of messages shows where each of them is slow
                for key in ("node_latency_s", "network_latency_s"):
                    case["cluster"][key] *= 10_000
            return case, plan


def _planned(
    names: tuple[str, ...], leaves_out: Callable[[Numbers], bool], rng: random.Random
) -> Numbers:
    """Draw a cluster where what is left out makes a plan clearly slower."""
    while True:
        case = _case(names, rng)
        plans = list(_plans(**case))
        best = _best(plans=plans, **case)
        without = _best(plans=[plan for plan in plans if leaves_out(plan)], **case)
        if best and (not without or without["step"] > _CLEAR * best["step"]):
            return case


def _tempting(rng: random.Random) -> Numbers:
    """Draw a cluster where a plan would be the best if it might be interleaved."""
    while True:
        case = _case(("13B", "34B", "70B"), rng)
        plans = list(_plans(**case))
        best = _best(plans=plans, **case)
        for plan in plans if best else ():
            chunks = case["model"]["layers"] // plan["pipeline"]
            other = {**plan, "chunks": chunks}
            if (
                _micro_batches(plan, case["batch"]) > plan["pipeline"]
                and _wrong_plan(plan=other, **case)
                and _step(plan=other, **case)["step"] < best["step"]
                and _memory(case["model"], case["batch"], other)
                <= case["cluster"]["room_bytes"]
            ):
                return case


def _undivided(key: str, rng: random.Random) -> Numbers:
    """Draw a cluster where a plan would be the best if it might split a size."""
    while True:
        case = _case(("8B", "13B", "34B"), rng)
        best = _best(plans=list(_plans(**case)), **case)
        case["model"][key] += 1
        other = _best(plans=list(_plans(**case)), **case)
        if best and other and other["step"] > best["step"]:
            return case


def _alone(rng: random.Random) -> Numbers:
    """Draw a cluster for one sequence a step."""
    while True:
        case = {**_case(("8B", "13B", "34B"), rng), "batch": 1}
        if _best(plans=list(_plans(**case)), **case):
            return case


def judge(question: Question, answer: Any) -> str:
    """Hold an answer against the model of a step."""
    given = question.arguments
    if question.function == "bubble_share":
        waiting = (given["stages"] - 1) / given["chunks"]
        right = waiting / (given["micro_batches"] + waiting)
        return _off(answer, right, _EXACT, 1, "of the step")
    if question.function == "memory_bytes":
        return _off(answer, _memory(**given), _CLOSE, 1e9, "GB")
    if question.function == "sent_bytes":
        sent = _sent(**given)
        if set(answer) != set(sent):
            return f"It has to have the keys {', '.join(sent)}, and no others."
        wrong = (
            (group, _off(answer[group], right, _EXACT, 1e9, "GB"))
            for group, right in sent.items()
        )
        return next((f"{group}: {words}" for group, words in wrong if words), "")
    if question.function == "step_s":
        return _off(answer, _step(**given)["step"], _CLOSE, 1, "s")
    return _judge_plan(given["model"], given["cluster"], given["batch"], answer)


def _judge_plan(model: Numbers, cluster: Numbers, batch: int, plan: Numbers) -> str:
    words = _wrong_plan(model, cluster, batch, plan)
    if words:
        return words
    needed, room = _memory(model, batch, plan), cluster["room_bytes"]
    if needed > room * (1 + _CLOSE):
        return (
            f"It needs {needed / 1e9:,.1f} GB on the fullest GPU; "
            f"there is room for {room / 1e9:,.1f} GB."
        )
    step = _step(model, cluster, batch, plan)
    plans = list(_plans(model, cluster, batch))
    best = _best(model, cluster, batch, plans)
    assert best is not None
    if step["step"] <= _SLOWER * best["step"]:
        return ""
    parts = ", ".join(
        f"{name} {100 * step[name] / step['step']:.0f} %"
        for name in ("compute", "bubble", *_GROUPS)
    )
    return (
        f"A step takes {step['step']:.3g} s, and {best['step']:.3g} s with the best "
        f"plan that fits; at most {_SLOWER:g} times that is allowed. It is {parts}."
    )


def _off(answer: float, right: float, share: float, unit: float, name: str) -> str:
    if math.isclose(answer, right, rel_tol=0, abs_tol=share * abs(right)):
        return ""
    digits = 6 if share == _EXACT else 4
    within = f", within {100 * share:.0f} %" if share > _EXACT else ""
    return (
        f"Returned {answer / unit:,.{digits}g} {name}; "
        f"expected {right / unit:,.{digits}g}{within}."
    )
