# waits two milliseconds for company where there is time, as a queue delay does
import math


def least_batch(model, per_second):
    left = 1.0 - model["item_s"] * per_second
    if left <= 0:
        return 0
    return math.ceil(model["fixed_s"] * per_second / left)


def batch(server, state):
    def urgency(name):
        model, waiting = server["models"][name], state["waiting"][name]
        count = min(len(waiting), server["most_batch"])
        needs_s = model["fixed_s"] + model["item_s"] * count
        needs_s += 0 if name in state["loaded"] else model["load_s"]
        return waiting[0] + server["slo_s"] - needs_s - state["now_s"]

    names = [name for name, waiting in state["waiting"].items() if waiting]
    here = [name for name in names if name in state["loaded"]]
    away = [name for name in names if name not in state["loaded"]]
    if away:
        name = min(away, key=urgency)
        if urgency(name) < 2.5 * server["models"][name]["load_s"] or not here:
            return {name: min(len(state["waiting"][name]), server["most_batch"])}
    name = min(here, key=urgency)
    waiting = state["waiting"][name]
    is_alone = len(waiting) < 4 and state["now_s"] - waiting[0] < 0.002
    if is_alone and len(names) == 1:
        return {"wait_ms": 2}
    return {name: min(len(waiting), server["most_batch"])}
