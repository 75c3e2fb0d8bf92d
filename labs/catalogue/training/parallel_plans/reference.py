"""Plans of parallel training: price each that is valid, take the fastest that fits."""

from math import gcd


def bubble_share(stages, chunks, micro_batches):
    waiting = (stages - 1) / chunks
    return waiting / (micro_batches + waiting)


def micro_batches_of(batch, plan):
    return batch // (plan["data"] * plan["micro_batch"])


def matrices(model):
    heads = model["heads"] + model["kv_heads"]
    return model["hidden"] * (
        2 * heads * model["head_size"] + 3 * model["intermediate"]
    )


def memory_bytes(model, batch, plan):
    tensor, stages, chunks = plan["tensor"], plan["pipeline"], plan["chunks"]
    hidden, table = model["hidden"], model["vocabulary"] * model["hidden"]
    tokens = plan["micro_batch"] * model["sequence"]
    count = micro_batches_of(batch, plan)
    layers = model["layers"] // stages

    whole, split = 8 * tokens * hidden + 8 * tokens, 0
    if plan["recompute"]:
        whole = 2 * tokens * hidden
    else:
        width = (model["heads"] + model["kv_heads"]) * model["head_size"]
        split = tokens * (4 * width + 4 * model["heads"] + 8 * model["intermediate"])
    split_whole = tensor if plan["sequence_parallel"] else 1
    kept = layers * (split / tensor + whole / split_whole)

    fullest = 0
    for stage in range(stages):
        parameters = layers * (matrices(model) / tensor + 2 * hidden)
        kept_here, logits = kept, 0
        if stage == 0:
            parameters += table / tensor
        if stage == stages - 1:
            parameters += table / tensor + hidden
            kept_here += 4 * tokens * hidden / split_whole
            logits = 14 * tokens * model["vocabulary"] / tensor
        states = 12 / (plan["data"] if plan["sharded_optimizer"] else 1)
        in_flight = min(stages - stage, count)
        if chunks > 1:
            ahead = 2 * (stages - stage - 1) + (chunks - 1) * stages + 1
            in_flight = min(ahead, count * chunks) / chunks
        needed = (4 + states) * parameters + in_flight * kept_here + logits
        fullest = max(fullest, needed)
    return fullest


def sent_bytes(model, batch, plan):
    tensor, data = plan["tensor"], plan["data"]
    count = micro_batches_of(batch, plan)
    layers = model["layers"] / plan["pipeline"]
    states = 2 * plan["micro_batch"] * model["sequence"] * model["hidden"]
    passes = 3 if plan["recompute"] else 2
    gradients = 2 * layers * (matrices(model) / tensor + 2 * model["hidden"])
    boundary = states / (tensor if plan["sequence_parallel"] else 1)
    crossings = 2 * plan["chunks"] if plan["pipeline"] > 1 else 0
    return {
        "tensor": count * layers * passes * 2 * 2 * (tensor - 1) / tensor * states,
        "pipeline": count * crossings * boundary,
        "data": 2 * (data - 1) / data * gradients,
    }


def step_s(model, cluster, batch, plan):
    tensor, stages, data = plan["tensor"], plan["pipeline"], plan["data"]
    count = micro_batches_of(batch, plan)
    layers = model["layers"] / stages
    tokens = plan["micro_batch"] * model["sequence"]
    repeats = 4 if plan["recompute"] else 3

    scores = 4 * tokens * model["sequence"] * model["heads"] * model["head_size"]
    layer = (2 * tokens * matrices(model) + scores) / tensor
    logits = 2 * tokens * model["hidden"] * model["vocabulary"] / tensor
    work = layers * repeats * layer + 3 * logits
    compute_s = work / cluster["flops_per_s"]
    compute_s += layers * repeats * cluster["layer_overhead_s"]

    messages = {
        "tensor": count * layers * (repeats - 1) * 2 * 2 * (tensor - 1),
        "pipeline": count * 2 * plan["chunks"] if stages > 1 else 0,
        "data": 2 * (data - 1),
    }
    spans = {
        "tensor": tensor,
        "data": tensor * data,
        "pipeline": tensor * data * stages,
    }
    sent = sent_bytes(model, batch, plan)
    seconds = {}
    for group, span in spans.items():
        where = "network" if cluster["gpus_per_node"] % span else "node"
        seconds[group] = messages[group] * cluster[where + "_latency_s"]
        seconds[group] += sent[group] / cluster[where + "_bytes_per_s"]

    busy_s = count * compute_s + seconds["tensor"] + seconds["pipeline"]
    share = bubble_share(stages, plan["chunks"], count)
    return busy_s / (1 - share) + seconds["data"]


def divisors(number):
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def valid_plans(model, cluster, batch):
    gpus = cluster["gpus"]
    for tensor in divisors(gcd(gpus, model["heads"], model["kv_heads"])):
        if model["intermediate"] % tensor or model["vocabulary"] % tensor:
            continue
        for stages in divisors(gcd(gpus // tensor, model["layers"])):
            data = gpus // tensor // stages
            if batch % data:
                continue
            for micro_batch in divisors(batch // data):
                count = batch // data // micro_batch
                interleaves = stages > 1 and count % stages == 0
                most = model["layers"] // stages if interleaves else 1
                for chunks in divisors(most):
                    for recompute in (0, 1):
                        yield {
                            "tensor": tensor,
                            "pipeline": stages,
                            "data": data,
                            "chunks": chunks,
                            "micro_batch": micro_batch,
                            "sequence_parallel": int(tensor > 1),
                            "sharded_optimizer": int(data > 1),
                            "recompute": recompute,
                        }


def plan(model, cluster, batch):
    fitting = (
        candidate
        for candidate in valid_plans(model, cluster, batch)
        if memory_bytes(model, batch, candidate) <= cluster["room_bytes"]
    )
    return min(fitting, key=lambda candidate: step_s(model, cluster, batch, candidate))
