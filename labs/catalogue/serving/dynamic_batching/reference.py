"""Batch whatever waits, the most urgent model first, and load seldom."""

import math


def least_batch(model, per_second):
    # count / (fixed + count * item) >= rate
    idle = 1 - per_second * model["item_s"]
    return math.ceil(per_second * model["fixed_s"] / idle) if idle > 0 else 0


def batch(server, state):
    counts, slack_s = {}, {}
    for name, waiting in state["waiting"].items():
        if not waiting:
            continue
        model = server["models"][name]
        counts[name] = min(len(waiting), server["most_batch"])
        takes_s = model["fixed_s"] + counts[name] * model["item_s"]
        if name not in state["loaded"]:
            takes_s += model["load_s"]
        slack_s[name] = waiting[0] + server["slo_s"] - state["now_s"] - takes_s

    # a load keeps everybody waiting: put it off while there is time
    load_s = max(model["load_s"] for model in server["models"].values())
    urgent = [
        name
        for name in slack_s
        if name in state["loaded"] or slack_s[name] < 1.5 * load_s
    ]
    name = min(urgent or slack_s, key=slack_s.get)
    return {name: counts[name]}
