"""Serve several models from one GPU. Fill in the two functions.

`batch` is called when the GPU is free and somebody waits, with plain data, such as

    {"slo_s": 0.08, "slots": 2, "most_batch": 16,
     "models": {"m0": {"fixed_s": 0.006, "item_s": 0.0008, "load_s": 0.12}}}
    {"now_s": 1.25, "loaded": ["m0"], "waiting": {"m0": [1.241, 1.249]}}
"""


def least_batch(model, per_second):
    """Give the smallest batch that keeps up with a rate."""
    return 1


def batch(server, state):
    """Decide what is computed. This one computes one request after another."""
    waiting = {name: times for name, times in state["waiting"].items() if times}
    oldest = min(waiting, key=lambda name: waiting[name][0])
    return {oldest: 1}
