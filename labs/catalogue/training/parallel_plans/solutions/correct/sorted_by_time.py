# plans are sorted by time first, and memory is asked for until one fits
from collections import namedtuple
from itertools import product

Sizes = namedtuple("Sizes", "tokens count layers matrices hidden_bytes")


def sizes(model, batch, plan):
    m = model
    tokens = plan["micro_batch"] * m["sequence"]
    projections = 2 * m["hidden"] * m["head_size"] * (m["heads"] + m["kv_heads"])
    return Sizes(
        tokens,
        batch // plan["data"] // plan["micro_batch"],
        m["layers"] // plan["pipeline"],
        projections + 3 * m["hidden"] * m["intermediate"],
        2 * tokens * m["hidden"],
    )


def bubble_share(stages, chunks, micro_batches):
    return (stages - 1) / (stages - 1 + chunks * micro_batches)


def kept_of_layer(model, plan, tokens):
    m, t = model, plan["tensor"]
    t_whole = t if plan["sequence_parallel"] else 1
    if plan["recompute"]:
        return 2 * tokens * m["hidden"] / t_whole
    heads = m["heads"] + m["kv_heads"]
    inner = 4 * heads * m["head_size"] + 4 * m["heads"] + 8 * m["intermediate"]
    return tokens * (inner / t + 8 * (m["hidden"] + 1) / t_whole)


def on_stage(model, batch, plan, stage):
    m, p, v, t = model, plan["pipeline"], plan["chunks"], plan["tensor"]
    s = sizes(model, batch, plan)
    is_first, is_last = stage == 0, stage == p - 1
    table = m["vocabulary"] * m["hidden"] / t
    parameters = s.layers * (s.matrices / t + 2 * m["hidden"])
    parameters += table * (is_first + is_last) + m["hidden"] * is_last
    begun = 2 * (p - stage - 1) + (v - 1) * p + 1 if v > 1 else p - stage
    in_flight = min(begun, v * s.count) / v
    kept = s.layers * kept_of_layer(model, plan, s.tokens)
    if is_last:
        kept += 2 * s.hidden_bytes / (t if plan["sequence_parallel"] else 1)
    a_parameter = 4 + (12 / plan["data"] if plan["sharded_optimizer"] else 12)
    logits = 14 * s.tokens * m["vocabulary"] / t if is_last else 0
    return a_parameter * parameters + in_flight * kept + logits


def memory_bytes(model, batch, plan):
    return max(on_stage(model, batch, plan, i) for i in range(plan["pipeline"]))


def messages(model, batch, plan):
    """Give number and bytes of messages by group."""
    s, t, d = sizes(model, batch, plan), plan["tensor"], plan["data"]
    all_reduces = s.count * s.layers * 2 * (2 + plan["recompute"])
    crossings = s.count * 2 * plan["chunks"] * (plan["pipeline"] > 1)
    across = s.hidden_bytes / (t if plan["sequence_parallel"] else 1)
    gradients = 2 * s.layers * (s.matrices / t + 2 * model["hidden"])
    return {
        "tensor": (all_reduces * 2 * (t - 1), s.hidden_bytes / t),
        "pipeline": (crossings, across),
        "data": (2 * (d - 1), gradients / d),
    }


def sent_bytes(model, batch, plan):
    return {
        group: float(number * each)
        for group, (number, each) in messages(model, batch, plan).items()
    }


def step_s(model, cluster, batch, plan):
    s, t, d, p = (
        sizes(model, batch, plan),
        plan["tensor"],
        plan["data"],
        plan["pipeline"],
    )
    again = 3 + plan["recompute"]
    attention = 4 * s.tokens * model["sequence"] * model["heads"] * model["head_size"]
    flops = s.layers * again * (2 * s.tokens * s.matrices + attention)
    flops += 3 * s.hidden_bytes * model["vocabulary"]
    busy = s.count * flops / t / cluster["flops_per_s"]
    busy += s.count * s.layers * again * cluster["layer_overhead_s"]
    took = {}
    for group, span in (("tensor", t), ("data", t * d), ("pipeline", t * d * p)):
        place = "node" if cluster["gpus_per_node"] % span == 0 else "network"
        number, each = messages(model, batch, plan)[group]
        a_message = each / cluster[place + "_bytes_per_s"]
        took[group] = number * (cluster[place + "_latency_s"] + a_message)
    busy += took["tensor"] + took["pipeline"]
    return busy * (1 + (p - 1) / plan["chunks"] / s.count) + took["data"]


def parts(number):
    return [n for n in range(1, number + 1) if number % n == 0]


def candidates(model, cluster, batch):
    for t, p in product(parts(cluster["gpus"]), parts(model["layers"])):
        if cluster["gpus"] % (t * p):
            continue
        if any(
            model[k] % t for k in ("heads", "kv_heads", "intermediate", "vocabulary")
        ):
            continue
        d = cluster["gpus"] // t // p
        if batch % d:
            continue
        for b, v, again in product(
            parts(batch // d), parts(model["layers"] // p), (0, 1)
        ):
            if v > 1 and (p == 1 or batch // d // b % p):
                continue
            yield {
                "tensor": t,
                "pipeline": p,
                "data": d,
                "chunks": v,
                "micro_batch": b,
                "sequence_parallel": int(t > 1),
                "sharded_optimizer": int(d > 1),
                "recompute": again,
            }


def plan(model, cluster, batch):
    by_time = sorted(
        candidates(model, cluster, batch),
        key=lambda each: step_s(model, cluster, batch, each),
    )
    return next(
        each
        for each in by_time
        if memory_bytes(model, batch, each) <= cluster["room_bytes"]
    )
