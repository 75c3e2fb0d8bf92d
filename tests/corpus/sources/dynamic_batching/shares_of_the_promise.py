# How much of the promise is used up decides, in sorted tuples; a load is put off by a weight
from math import ceil, inf


def least_batch(model, per_second):
    fixed, item = model["fixed_s"], model["item_s"]
    best = 1 / item
    return (
        ceil(fixed * per_second * best / (best - per_second))
        if best > per_second
        else 0
    )


def order(server, state):
    promise = server["slo_s"]
    for name, came in state["waiting"].items():
        if not came:
            continue
        model = server["models"][name]
        size = min(server["most_batch"], len(came))
        work = model["fixed_s"] + model["item_s"] * size
        used = state["now_s"] - came[0] + work
        if name in state["loaded"]:
            yield used / promise, name, size
        elif promise - used - model["load_s"] < 1.75 * model["load_s"]:
            yield inf, name, size
        else:
            yield -1 / (1 + used), name, size


def batch(server, state):
    _, name, size = max(order(server, state))
    return {name: size}
