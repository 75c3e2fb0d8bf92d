"""Plan an optimizer step on the CPU. Fill in the two functions.

A row of a plan is a bucket: [layers, cast_on_gpu, adam_on_gpu]. Buckets are in the
order in which backward reaches their layers.
"""


def step_s(machine, layers, plan):
    """Give the seconds from the begin of backward until all weights are on the GPU."""
    return sum(layer["backward_s"] for layer in layers)


def plan(machine, layers):
    """Give a fast plan: so far one bucket, which is cast and updated on the CPU."""
    return [[len(layers), 0, 0]]
